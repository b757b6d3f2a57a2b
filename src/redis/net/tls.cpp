#include "redis/net/tls.hpp"

#include <arpa/inet.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <optional>

#include "redis/net/openssl.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "util/mutex.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

using Context = std::shared_ptr<SSL_CTX>;

}  // namespace

struct Tls::Files {
  struct Paths {
    std::string authorities;  // of --cacert, or the system's bundle; empty: there is none
    std::string folders;      // of the system's authorities, separated by colons
    std::string cert;
    std::string key;
  };

  const Paths paths;  // absolute, because rlock may work in another folder later
  const Verify verify;
  util::Mutex mutex;
  Context context;
  TimePoint read_at = BootClock::now();  // when the last read began
  bool reading = false;

  Context current() {
    std::lock_guard lock(mutex);
    return context;
  }
};

namespace {

using TlsPaths = Tls::Files::Paths;

// The library, which Tls::make() has loaded.
const OpenSsl& lib() {
  return **openssl();
}

// Reads the files on a thread, because one of them may be on a hung mount.
void read_again(const std::shared_ptr<Tls::Files>& files);

struct FreeSession {
  void operator()(SSL* session) const noexcept { lib().SSL_free(session); }
};

enum class OwnCertificate { none, shown };

struct TlsPeer {
  std::string name;    // that the certificate must contain
  OwnCertificate own;  // whether it gets a client certificate
};

constexpr int kMostNames = 8;

// The names in the certificate that this thread rejected last.
std::string& rejected_names() {
  thread_local std::string names;
  return names;
}

std::string address(const unsigned char* bytes, int size) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = size == 4 ? AF_INET : AF_INET6;
  if (size != 4 && size != 16) return {};
  return inet_ntop(family, bytes, text.data(), text.size()) == nullptr ? "" : text.data();
}

// A host name or an address; empty for any other kind of name.
std::string text_of(const GENERAL_NAME* name) {
  int type = 0;
  const auto* value = static_cast<const ASN1_STRING*>(lib().GENERAL_NAME_get0_value(name, &type));
  if (type != GEN_DNS && type != GEN_IPADD) return {};
  const unsigned char* bytes = lib().ASN1_STRING_get0_data(value);
  const int size = lib().ASN1_STRING_length(value);
  if (type == GEN_IPADD) return address(bytes, size);
  constexpr int kLongest = 255;
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(std::min(size, kLongest))};
}

std::string names_in(const X509* certificate) {
  auto* names = static_cast<GENERAL_NAMES*>(
      lib().X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  if (names == nullptr) return {};
  const std::unique_ptr<GENERAL_NAMES, decltype(lib().GENERAL_NAMES_free)> owned(
      names, lib().GENERAL_NAMES_free);
  const auto* stack = reinterpret_cast<const OPENSSL_STACK*>(names);
  std::string text;
  for (int i = 0; i < std::min(kMostNames, lib().OPENSSL_sk_num(stack)); ++i) {
    const auto* name = static_cast<const GENERAL_NAME*>(lib().OPENSSL_sk_value(stack, i));
    const std::string one = text_of(name);
    if (!one.empty()) util::append(text, ", ", one);
  }
  return text;
}

Error denied(const std::string& why, Cause cause = Cause::tls) {
  return {ErrorKind::denied, "TLS: " + why, Retry::never, Answered::no, cause};
}

Error not_now(const std::string& why) {
  return {ErrorKind::unavailable, why, Retry::later, Answered::no, Cause::tls};
}

// The names to verify instead, because servers behind a tunnel, and nodes that are known by their
// addresses, have certificates for other names.
std::string certificate_names() {
  const std::string& names = rejected_names();
  return names.empty() ? " (it contains no host name)"
                       : util::format(" but for {} (--sni NAME verifies another name)", names);
}

Error rejected(const std::string& why, Cause cause = Cause::tls) {
  return denied("the server's certificate was rejected: " + why, cause);
}

Error certificate_error(const SSL* session, const TlsPeer& peer) {
  const long why = lib().SSL_get_verify_result(session);
  switch (why) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return rejected(util::format("it is not for {}{}", peer.name, certificate_names()),
                      Cause::certificate_name);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return rejected("it is self-signed (--cacert FILE names a CA to trust)",
                      Cause::certificate_authority);
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return rejected("no trusted CA signed it (--cacert FILE names a CA to trust)",
                      Cause::certificate_authority);
    default:
      return rejected(lib().X509_verify_cert_error_string(why));
  }
}

// The alerts with which a server rejects a client for its certificate or its abilities.
bool is_rejection(int alert) {
  constexpr int kAlerts[] = {SSL_AD_HANDSHAKE_FAILURE,
                             SSL_AD_BAD_CERTIFICATE,
                             SSL_AD_UNSUPPORTED_CERTIFICATE,
                             SSL_AD_CERTIFICATE_REVOKED,
                             SSL_AD_CERTIFICATE_EXPIRED,
                             SSL_AD_CERTIFICATE_UNKNOWN,
                             SSL_AD_UNKNOWN_CA,
                             SSL_AD_ACCESS_DENIED,
                             SSL_AD_PROTOCOL_VERSION,
                             SSL_AD_INSUFFICIENT_SECURITY,
                             SSL_AD_UNRECOGNIZED_NAME,
                             SSL_AD_CERTIFICATE_REQUIRED};
  return std::find(std::begin(kAlerts), std::end(kAlerts), alert) != std::end(kAlerts);
}

Error alert_error(int alert, const std::string& reason, const TlsPeer& peer) {
  if (alert == SSL_AD_CERTIFICATE_REQUIRED) {
    return denied("the server requires a client certificate (--cert FILE, --key FILE)");
  }
  bool certificate = alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN;
  certificate = certificate || alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_ACCESS_DENIED;
  if (certificate && peer.own == OwnCertificate::shown) {
    return denied("the server rejected the client certificate: " + reason);
  }
  // TLS 1.2 has no alert for a missing certificate.
  if (alert == SSL_AD_HANDSHAKE_FAILURE && peer.own == OwnCertificate::none) {
    return denied(
        "the server rejected the handshake; it may require a client certificate (--cert "
        "FILE)");
  }
  if (is_rejection(alert)) return denied("the server rejected the handshake: " + reason);
  return not_now("TLS: " + reason);
}

// The errors that OpenSSL reports for bytes that are not TLS.
bool is_not_tls(int reason) {
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
         reason == SSL_R_PACKET_LENGTH_TOO_LONG || reason == SSL_R_RECORD_LENGTH_MISMATCH;
}

// For SSL_CTX_set_verify: records the names in a rejected certificate, for tls_error() in this
// thread.
int note_rejected_names(int accepted, X509_STORE_CTX* context) {
  if (accepted != 0) return accepted;
  const X509* certificate = lib().X509_STORE_CTX_get_current_cert(context);
  rejected_names() = certificate == nullptr ? "" : names_in(certificate);
  return accepted;
}

// Why TLS has just failed in this thread, with advice if a user can correct it. ErrorKind::denied:
// one side does not trust the other; ErrorKind::config: the peer does not speak TLS; otherwise
// ErrorKind::unavailable, which is retried.
Error tls_error(const SSL* session, const TlsPeer& peer) {
  // The last error ended the session; a lookup of CAs may have left others.
  unsigned long code = lib().ERR_peek_last_error();
  int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
  const char* known_text = lib().ERR_reason_error_string(code);
  std::string text = known_text == nullptr ? "unknown error" : known_text;
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) return certificate_error(session, peer);
  if (reason > SSL_AD_REASON_OFFSET) return alert_error(reason - SSL_AD_REASON_OFFSET, text, peer);
  if (lib().SSL_is_init_finished(session) != 0) {
    return not_now("TLS: " + text);
  }
  if (is_not_tls(reason)) {
    return {ErrorKind::config, "TLS: the server does not speak TLS; use redis:// for a plain port",
            Retry::never, Answered::no, Cause::tls};
  }
  return denied(text);
}

// ---- between OpenSSL and the socket: its own BIO for sockets would raise SIGPIPE ----

struct Wire {
  util::Fd fd;
  Io last_io = Io::done;
  int error = 0;  // errno of that
};

Wire& wire_of(BIO* bio) {
  lib().BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  return *static_cast<Wire*>(lib().BIO_get_data(bio));
}

int nothing_passed(BIO* bio, const Wire& wire, int direction) {
  if (wire.last_io == Io::closed) return 0;
  if (wire.last_io == Io::would_block) {
    lib().BIO_set_flags(bio, direction | BIO_FLAGS_SHOULD_RETRY);
  }
  return -1;
}

int wire_write(BIO* bio, const char* bytes, int size) {
  Wire& wire = wire_of(bio);
  std::string_view rest(bytes, static_cast<size_t>(size));
  wire.last_io = write_some(wire.fd, rest);
  wire.error = errno;
  const int written = size - static_cast<int>(rest.size());
  return written > 0 || size == 0 ? written : nothing_passed(bio, wire, BIO_FLAGS_WRITE);
}

int wire_read(BIO* bio, char* buffer, int size) {
  Wire& wire = wire_of(bio);
  size_t got = 0;
  wire.last_io = read_some(wire.fd, buffer, static_cast<size_t>(size), got);
  wire.error = errno;
  return got > 0 ? static_cast<int>(got) : nothing_passed(bio, wire, BIO_FLAGS_READ);
}

long wire_control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;  // nothing is buffered here
}

// Made once and never freed.
const BIO_METHOD* wire_method() {
  static const BIO_METHOD* made = [] {
    const int type = lib().BIO_get_new_index() | BIO_TYPE_SOURCE_SINK;
    BIO_METHOD* method = lib().BIO_meth_new(type, "rlock");
    if (method == nullptr) throw std::bad_alloc();
    lib().BIO_meth_set_write(method, wire_write);
    lib().BIO_meth_set_read(method, wire_read);
    lib().BIO_meth_set_ctrl(method, wire_control);
    return method;
  }();
  return made;
}

// OpenSSL takes sizes as int.
int bounded(size_t size) {
  return static_cast<int>(std::min(size, size_t{INT_MAX}));
}

// One TLS session over one socket. The handshake is part of the first writes and reads.
class TlsStream final : public Stream {
 public:
  TlsStream(std::unique_ptr<SSL, FreeSession> session, util::Fd fd, TlsPeer peer,
            std::shared_ptr<Tls::Files> files)
      : wire_{std::move(fd)},
        peer_(std::move(peer)),
        session_(std::move(session)),
        files_(std::move(files)) {
    BIO* bio = lib().BIO_new(wire_method());
    if (bio == nullptr) throw std::bad_alloc();
    lib().BIO_set_data(bio, &wire_);
    lib().BIO_set_init(bio, 1);
    lib().SSL_set_bio(session_.get(), bio, bio);  // frees it with the session
    lib().SSL_set_connect_state(session_.get());
  }
  // OpenSSL holds the address of wire_.
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  Io write_some(std::string_view& bytes) override {
    while (!bytes.empty()) {
      if (broken_) return Io::failed;
      lib().ERR_clear_error();
      int sent = lib().SSL_write(session_.get(), bytes.data(), bounded(bytes.size()));
      if (sent <= 0) return to_io(sent, write_awaits_);
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return Io::done;
  }

  // Never drained: poll() does not report bytes that OpenSSL has already read.
  Io read_some(char* buffer, size_t size, size_t& got) override {
    if (broken_) return Io::failed;
    lib().ERR_clear_error();
    int count = lib().SSL_read(session_.get(), buffer, bounded(size));
    if (count <= 0) return to_io(count, read_awaits_);
    got = static_cast<size_t>(count);
    files_.reset();
    return Io::done;
  }

  // SSL_peek also processes what is not data: session tickets, an alert.
  bool is_quiet() override {
    char byte = 0;
    if (broken_) return false;
    lib().ERR_clear_error();
    int count = lib().SSL_peek(session_.get(), &byte, 1);
    return count <= 0 && to_io(count, read_awaits_) == Io::would_block;
  }

  pollfd wants(Sending sending) const override {
    int events = sending == Sending::done ? read_awaits_ : read_awaits_ | write_awaits_;
    return {wire_.fd.get(), static_cast<short>(events), 0};
  }

  Error silence() const override {
    if (lib().SSL_is_init_finished(session_.get()) != 0) return Stream::silence();
    return not_now("no TLS handshake; is this a port without TLS? use redis:// for one");
  }

  std::optional<std::chrono::system_clock::time_point> certificate_end() const override {
    const X509* certificate = lib().SSL_get0_peer_certificate(session_.get());
    std::tm end{};
    if (certificate == nullptr ||
        lib().ASN1_TIME_to_tm(lib().X509_get0_notAfter(certificate), &end) != 1)
      return std::nullopt;
    return std::chrono::system_clock::from_time_t(timegm(&end));
  }

  Error error() const override {
    return tls_error_.value_or(Error{ErrorKind::internal, "no error"});
  }

 private:
  Io failed(Error why) {
    tls_error_ = std::move(why);
    return Io::failed;
  }

  // Interprets the `result` of an OpenSSL call, and sets `awaited` to the event to poll for.
  Io to_io(int result, short& awaited) {
    const Io io = state_after(result, awaited);
    if (io != Io::would_block && files_) read_again(std::exchange(files_, nullptr));
    return io;
  }

  Io state_after(int result, short& awaited) {
    switch (lib().SSL_get_error(session_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        awaited = POLLIN;
        return Io::would_block;
      case SSL_ERROR_WANT_WRITE:
        awaited = POLLOUT;
        return Io::would_block;
      case SSL_ERROR_ZERO_RETURN:
        return Io::closed;
      case SSL_ERROR_SYSCALL:
        if (wire_.last_io == Io::closed) return Io::closed;
        return failed({ErrorKind::unavailable, std::strerror(wire_.error), Retry::later});
      default:
        broken_ = true;
        return failed(tls_error(session_.get(), peer_));
    }
  }

  Wire wire_;
  TlsPeer peer_;
  std::unique_ptr<SSL, FreeSession> session_;
  std::shared_ptr<Tls::Files> files_;  // until the peer has sent something, or the session failed
  bool broken_ = false;  // TLS itself has failed, so the session cannot be used any more
  short write_awaits_ = POLLOUT;
  short read_awaits_ = POLLIN;
  std::optional<Error> tls_error_;
};

// A folder by subject hash, so that OpenSSL reads only the CAs of a chain: parsing the whole bundle
// takes 28 ms.
constexpr const char* kSystemAuthorities = "/etc/ssl/certs";
// The bundle of Red Hat's systems, whose folder has no hashes.
constexpr const char* kSystemBundle = "/etc/pki/tls/certs/ca-bundle.crt";

Error unusable(const std::string& what, const std::string& path, const std::string& why) {
  return {ErrorKind::config, util::format("cannot use the {} \"{}\": {}", what, path, why)};
}

enum class Reading { first, again };

// Rejects a device, which OpenSSL would read without end, and a pipe that was read before.
Status check_file(const std::string& what, const std::string& path, Reading reading) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return unusable(what, path, std::strerror(errno));
  if (S_ISREG(info.st_mode)) return Done{};
  if (S_ISFIFO(info.st_mode) && reading == Reading::first) return Done{};
  return unusable(what, path, "it is not a file");
}

// Without this callback OpenSSL would ask for the passphrase on the terminal.
int refuse_passphrase(char*, int, int, void* encrypted) {
  *static_cast<bool*>(encrypted) = true;
  return -1;
}

// The first error says what is wrong with the file; later errors only follow from it.
std::string why_unreadable(const std::string& what) {
  const unsigned long code = lib().ERR_peek_error();
  if (ERR_SYSTEM_ERROR(code)) return std::strerror(ERR_GET_REASON(code));
  const bool mismatch =
      ERR_GET_LIB(code) == ERR_LIB_X509 && ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH;
  if (mismatch) return "it does not match the certificate";
  // OpenSSL's security level rejects it: the key is too small, the digest too weak.
  const char* text =
      ERR_GET_LIB(code) == ERR_LIB_SSL ? lib().ERR_reason_error_string(code) : nullptr;
  return text != nullptr ? text : util::format("it contains no {} in PEM format", what);
}

// Fills one context from the files.
class ContextFiles {
 public:
  ContextFiles(SSL_CTX* context, Reading reading) : context_(context), reading_(reading) {}

  Status set(const TlsPaths& paths) {
    TRY_STATUS(set_authorities(paths));
    if (paths.cert.empty()) return Done{};
    TRY_STATUS(load("certificate", paths.cert, lib().SSL_CTX_use_certificate_chain_file));
    return set_key(paths.key.empty() ? paths.cert : paths.key);
  }

 private:
  // `loader` takes a context and a path, and returns 1 for success.
  template <class Loader>
  Status load(const std::string& what, const std::string& path, Loader loader) {
    TRY_STATUS(check_file(what, path, reading_));
    lib().ERR_clear_error();
    if (loader(context_, path.c_str()) == 1) return Done{};
    return unusable(what, path, why_unreadable(what));
  }

  Status set_authorities(const TlsPaths& paths) {
    if (!paths.authorities.empty()) {
      TRY_STATUS(load("CA certificate", paths.authorities, lib().SSL_CTX_load_verify_file));
    }
    for (std::string_view one : util::split(paths.folders, ':')) {
      if (!one.empty()) lib().SSL_CTX_load_verify_dir(context_, std::string(one).c_str());
    }
    return Done{};
  }

  Status set_key(const std::string& path) {
    bool encrypted = false;
    lib().SSL_CTX_set_default_passwd_cb(context_, refuse_passphrase);
    lib().SSL_CTX_set_default_passwd_cb_userdata(context_, &encrypted);
    auto loader = [](SSL_CTX* into, const char* file) {
      return lib().SSL_CTX_use_PrivateKey_file(into, file, SSL_FILETYPE_PEM);
    };
    auto ok = load("private key", path, loader);
    lib().SSL_CTX_set_default_passwd_cb_userdata(context_, nullptr);
    if (!encrypted) return ok;
    return unusable("private key", path, "it is encrypted, and rlock never asks for a passphrase");
  }

  SSL_CTX* const context_;
  const Reading reading_;
};

// As OpenSSL does: SSL_CERT_FILE and SSL_CERT_DIR (folders, separated by colons) take precedence
// over the system's own, and missing ones are skipped. OpenSSL's own paths would be those of the
// system that it was built for.
void find_system_authorities(TlsPaths& paths) {
  const char* file = secure_getenv("SSL_CERT_FILE");
  const char* folders = secure_getenv("SSL_CERT_DIR");
  if (file == nullptr && folders == nullptr) {
    file = kSystemBundle;
    folders = kSystemAuthorities;
  }
  if (file != nullptr && access(file, R_OK) == 0) paths.authorities = file;
  // Made absolute, because OpenSSL reads a folder at each handshake.
  for (std::string_view one : util::split(folders == nullptr ? "" : folders, ':')) {
    paths.folders += util::absolute(std::string(one)) + ":";
  }
}

Result<TlsPaths> paths_of(const TlsOptions& options) {
  if (options.cert.empty() && !options.key.empty()) {
    return Error{ErrorKind::config, "--key requires --cert"};
  }
  TlsPaths paths{options.cacert, {}, options.cert, options.key};
  if (paths.authorities.empty()) find_system_authorities(paths);
  return paths;
}

Result<Context> make_context(const TlsPaths& paths, Verify verify, Reading reading) {
  Context owned(lib().SSL_CTX_new(lib().TLS_client_method()), lib().SSL_CTX_free);
  SSL_CTX* context = owned.get();
  if (context == nullptr) throw std::bad_alloc();
  lib().SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  lib().SSL_CTX_ctrl(context, SSL_CTRL_MODE,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, nullptr);
  lib().SSL_CTX_set_verify(context, verify == Verify::peer ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                           note_rejected_names);
  TRY_STATUS(ContextFiles(context, reading).set(paths));
  return owned;
}

void read_again(const std::shared_ptr<Tls::Files>& files) {
  constexpr Millis kInterval{1000};
  std::lock_guard lock(files->mutex);
  const TimePoint now = BootClock::now();
  if (files->reading || now - files->read_at < kInterval) return;
  files->read_at = now;
  files->reading = util::start_detached([files] {
                     auto context = make_context(files->paths, files->verify, Reading::again);
                     std::lock_guard hold(files->mutex);
                     if (context) std::swap(files->context, *context);
                     files->reading = false;
                   }) == 0;
}

bool is_numeric(const std::string& host) {
  std::array<char, sizeof(in6_addr)> address;
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

// OpenSSL would accept any name for an empty name, and any subdomain for a name that begins with a
// dot.
bool is_unverifiable(const std::string& name) {
  return name.empty() || name.starts_with('.');
}

// A final dot is for the resolver only: certificates and SNI have none.
std::string without_final_dot(std::string host) {
  if (host.ends_with('.')) host.pop_back();
  return host;
}

}  // namespace

Result<std::shared_ptr<const Tls>> Tls::make(const TlsOptions& options) {
  if (!options.sni.empty() && is_unverifiable(without_final_dot(options.sni))) {
    return Error{ErrorKind::config, util::format("--sni \"{}\" is not a host name", options.sni)};
  }
  if (auto loaded = openssl(); !loaded) return std::move(loaded).error();
  TRY(const auto paths, paths_of(options));
  TRY(auto context, make_context(paths, options.verify, Reading::first));
  TlsPaths absolute{util::absolute(paths.authorities), paths.folders, util::absolute(paths.cert),
                    util::absolute(paths.key)};
  auto files = std::shared_ptr<Files>(new Files{.paths = std::move(absolute),
                                                .verify = options.verify,
                                                .mutex = {},
                                                .context = std::move(context)});
  return std::shared_ptr<const Tls>(new Tls(std::move(files), options));
}

Result<std::unique_ptr<Stream>> Tls::wrap(util::Fd fd, const std::string& host) const {
  std::string name = without_final_dot(options_.sni.empty() ? host : options_.sni);
  if (is_unverifiable(name)) {
    return denied(
        util::format("\"{}\" is not a host name that can be verified; use --sni NAME", host),
        Cause::certificate_name);
  }
  std::unique_ptr<SSL, FreeSession> session(lib().SSL_new(files_->current().get()));
  if (session == nullptr) throw std::bad_alloc();
  int set = 0;
  if (is_numeric(name)) {
    set = lib().X509_VERIFY_PARAM_set1_ip_asc(lib().SSL_get0_param(session.get()), name.c_str());
  } else {
    // Only the alternative names of a certificate count, not its common name.
    lib().SSL_set_hostflags(
        session.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    set = lib().SSL_set1_host(session.get(), name.c_str());
    // Fails for a name of more than 255 bytes, which no certificate can contain either.
    lib().SSL_ctrl(session.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                   name.data());
  }
  if (set != 1) throw std::bad_alloc();
  auto own = options_.cert.empty() ? OwnCertificate::none : OwnCertificate::shown;
  return std::unique_ptr<Stream>(
      std::make_unique<TlsStream>(std::move(session), std::move(fd), TlsPeer{name, own}, files_));
}

}  // namespace rlock::redis
