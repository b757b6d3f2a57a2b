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
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "redis/net/openssl.hpp"
#include "redis/net/socket.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::redis {

enum class OwnCertificate { none, shown };

struct TlsPeer {
  std::string name;    // that its certificate must be for
  OwnCertificate own;  // whether it gets a client certificate
};

namespace {

constexpr int kMostNames = 8;

// The names in the certificate that was rejected last in this thread.
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
std::string text_of(const OpenSsl& ssl, const GENERAL_NAME* name) {
  int type = 0;
  const auto* value = static_cast<const ASN1_STRING*>(ssl.GENERAL_NAME_get0_value(name, &type));
  if (type != GEN_DNS && type != GEN_IPADD) return {};
  const unsigned char* bytes = ssl.ASN1_STRING_get0_data(value);
  const int size = ssl.ASN1_STRING_length(value);
  if (type == GEN_IPADD) return address(bytes, size);
  constexpr int kLongest = 255;
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(std::min(size, kLongest))};
}

std::string names_in(const OpenSsl& ssl, const X509* certificate) {
  auto* names = static_cast<GENERAL_NAMES*>(
      ssl.X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  if (names == nullptr) return {};
  const std::unique_ptr<GENERAL_NAMES, decltype(ssl.GENERAL_NAMES_free)> owned(
      names, ssl.GENERAL_NAMES_free);
  const auto* stack = reinterpret_cast<const OPENSSL_STACK*>(names);
  std::string text;
  for (int i = 0; i < std::min(kMostNames, ssl.OPENSSL_sk_num(stack)); ++i) {
    const auto* name = static_cast<const GENERAL_NAME*>(ssl.OPENSSL_sk_value(stack, i));
    const std::string one = text_of(ssl, name);
    if (!one.empty()) text += (text.empty() ? "" : ", ") + one;
  }
  return text;
}

constexpr const char* kCacertHint = " (--cacert FILE names a CA to trust)";

Error denied(const std::string& why) {
  return {ErrorKind::denied, why};
}

// The names to verify instead: servers behind a tunnel, and nodes that are known by their
// addresses, have certificates for other names.
std::string certificate_names() {
  const std::string& names = rejected_names();
  return names.empty() ? std::string(" (it contains no host name)")
                       : " but for " + names + " (--sni NAME verifies another name)";
}

Error rejected_certificate(const OpenSsl& ssl, const SSL* session, const TlsPeer& peer) {
  long why = ssl.SSL_get_verify_result(session);
  std::string text = "TLS: the server's certificate was rejected: ";
  switch (why) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return denied(text + "it is not for " + peer.name + certificate_names());
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return denied(text + "it is self-signed" + kCacertHint);
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return denied(text + "no trusted CA signed it" + kCacertHint);
    default:
      return denied(text + ssl.X509_verify_cert_error_string(why));
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
    return denied("TLS: the server requires a client certificate (--cert FILE, --key FILE)");
  }
  bool certificate = alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN;
  certificate = certificate || alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_ACCESS_DENIED;
  if (certificate && peer.own == OwnCertificate::shown) {
    return denied("TLS: the server rejected the client certificate: " + reason);
  }
  // TLS 1.2 has no alert for a missing certificate.
  if (alert == SSL_AD_HANDSHAKE_FAILURE && peer.own == OwnCertificate::none) {
    return denied(
        "TLS: the server rejected the handshake; it may require a client certificate (--cert "
        "FILE)");
  }
  if (is_rejection(alert)) return denied("TLS: the server rejected the handshake: " + reason);
  return {ErrorKind::unavailable, "TLS: " + reason, Retry::later};
}

// The errors that OpenSSL reports for bytes that are not TLS.
bool is_not_tls(int reason) {
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
         reason == SSL_R_PACKET_LENGTH_TOO_LONG || reason == SSL_R_RECORD_LENGTH_MISMATCH;
}

// For SSL_CTX_set_verify: remembers, for tls_error() in this thread, the names in a certificate
// that is rejected.
int note_rejected_names(int accepted, X509_STORE_CTX* context) {
  auto ssl = openssl();
  if (accepted != 0 || !ssl) return accepted;
  const X509* certificate = (*ssl)->X509_STORE_CTX_get_current_cert(context);
  rejected_names() = certificate == nullptr ? "" : names_in(**ssl, certificate);
  return accepted;
}

// Why TLS itself failed just now in this thread, with advice where a user can do something about
// it. ErrorKind::denied: one side does not trust the other, or the peer does not speak TLS; else
// ErrorKind::unavailable, to be tried again.
Error tls_error(const OpenSsl& ssl, const SSL* session, const TlsPeer& peer) {
  // The last error ended the session; a look-up of CAs may have left others.
  unsigned long code = ssl.ERR_peek_last_error();
  int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
  const char* known_text = ssl.ERR_reason_error_string(code);
  std::string text = known_text == nullptr ? "unknown error" : known_text;
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) return rejected_certificate(ssl, session, peer);
  if (reason > SSL_AD_REASON_OFFSET) return alert_error(reason - SSL_AD_REASON_OFFSET, text, peer);
  if (ssl.SSL_is_init_finished(session) != 0) {
    return {ErrorKind::unavailable, "TLS: " + text, Retry::later};
  }
  if (is_not_tls(reason)) {
    return denied("TLS: the server does not speak TLS; use redis:// for a plain port");
  }
  return denied("TLS: " + text);
}

}  // namespace

struct FreeSsl {
  const OpenSsl* ssl;
  void operator()(SSL* session) const noexcept { ssl->SSL_free(session); }
};
using SslPtr = std::unique_ptr<SSL, FreeSsl>;

// Connects OpenSSL to our sockets: its own BIO for sockets would raise SIGPIPE.
class WireMethod {
 public:
  explicit WireMethod(const OpenSsl& ssl);
  BIO_METHOD* get() const { return method_.get(); }

 private:
  struct Free {
    const OpenSsl* ssl;
    void operator()(BIO_METHOD* method) const noexcept { ssl->BIO_meth_free(method); }
  };
  std::unique_ptr<BIO_METHOD, Free> method_;
};

// One TLS session over one socket. The handshake is part of the first writes and reads.
class TlsStream final : public Stream {
 public:
  // `ssl` and `method` must outlive it.
  TlsStream(const OpenSsl& ssl, SslPtr session, const WireMethod& method, util::Fd fd,
            TlsPeer peer);
  // OpenSSL holds its address.
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  Io write_some(std::string_view& bytes) override;
  Io read_some(char* buffer, size_t size, size_t& got) override;
  bool is_quiet() override;
  pollfd wants(Sending sending) const override;
  const char* timeout_reason() const override;
  std::optional<std::chrono::system_clock::time_point> certificate_end() const override;
  Error error() const override;

 private:
  friend class WireMethod;
  static int wire_write(BIO* bio, const char* bytes, int size);
  static int wire_read(BIO* bio, char* buffer, int size);
  static long wire_ctrl(BIO* bio, int command, long number, void* pointer);
  int waiting(BIO* bio, int direction) const;

  Io to_io(int result, short& awaited);
  Io failed(Error why);

  const OpenSsl& ssl_;
  util::Fd fd_;
  TlsPeer peer_;
  SslPtr session_;
  Io last_io_ = Io::done;  // of the socket
  int error_ = 0;          // its errno
  bool broken_ = false;    // TLS itself has failed: the session is of no further use
  short write_awaits_ = POLLOUT;
  short read_awaits_ = POLLIN;
  std::optional<Error> tls_error_;
};

namespace {

TlsStream& stream_of(BIO* bio) {
  return *static_cast<TlsStream*>((*openssl())->BIO_get_data(bio));
}

// OpenSSL takes sizes as int.
int bounded(size_t size) {
  return static_cast<int>(std::min(size, size_t{INT_MAX}));
}

}  // namespace

WireMethod::WireMethod(const OpenSsl& ssl)
    : method_(ssl.BIO_meth_new(ssl.BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rlock"),
              Free{&ssl}) {
  if (method_ == nullptr) throw std::bad_alloc();
  ssl.BIO_meth_set_write(method_.get(), TlsStream::wire_write);
  ssl.BIO_meth_set_read(method_.get(), TlsStream::wire_read);
  ssl.BIO_meth_set_ctrl(method_.get(), TlsStream::wire_ctrl);
}

TlsStream::TlsStream(const OpenSsl& ssl, SslPtr session, const WireMethod& method, util::Fd fd,
                     TlsPeer peer)
    : ssl_(ssl), fd_(std::move(fd)), peer_(std::move(peer)), session_(std::move(session)) {
  BIO* bio = ssl_.BIO_new(method.get());
  if (bio == nullptr) throw std::bad_alloc();
  ssl_.BIO_set_data(bio, this);
  ssl_.BIO_set_init(bio, 1);
  ssl_.SSL_set_bio(session_.get(), bio, bio);  // frees it with the session
  ssl_.SSL_set_connect_state(session_.get());
}

// ---- between OpenSSL and the socket ----

int TlsStream::waiting(BIO* bio, int direction) const {
  ssl_.BIO_set_flags(bio, direction | BIO_FLAGS_SHOULD_RETRY);
  return -1;
}

int TlsStream::wire_write(BIO* bio, const char* bytes, int size) {
  TlsStream& stream = stream_of(bio);
  stream.ssl_.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  std::string_view rest(bytes, static_cast<size_t>(size));
  stream.last_io_ = redis::write_some(stream.fd_, rest);
  stream.error_ = errno;
  int written = size - static_cast<int>(rest.size());
  if (written > 0 || stream.last_io_ == Io::done) return written;
  return stream.last_io_ == Io::would_block ? stream.waiting(bio, BIO_FLAGS_WRITE) : -1;
}

int TlsStream::wire_read(BIO* bio, char* buffer, int size) {
  TlsStream& stream = stream_of(bio);
  stream.ssl_.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  size_t got = 0;
  stream.last_io_ = redis::read_some(stream.fd_, buffer, static_cast<size_t>(size), got);
  stream.error_ = errno;
  if (got > 0) return static_cast<int>(got);
  if (stream.last_io_ == Io::closed) return 0;
  return stream.last_io_ == Io::would_block ? stream.waiting(bio, BIO_FLAGS_READ) : -1;
}

long TlsStream::wire_ctrl(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;  // nothing is buffered here
}

// ---- between OpenSSL and the connection ----

Io TlsStream::failed(Error why) {
  tls_error_ = std::move(why);
  return Io::failed;
}

// What the `result` of an OpenSSL call means; sets `awaited` to the event to poll for.
Io TlsStream::to_io(int result, short& awaited) {
  switch (ssl_.SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      awaited = POLLIN;
      return Io::would_block;
    case SSL_ERROR_WANT_WRITE:
      awaited = POLLOUT;
      return Io::would_block;
    case SSL_ERROR_ZERO_RETURN:
      return Io::closed;
    case SSL_ERROR_SYSCALL:
      if (last_io_ == Io::closed) return Io::closed;
      return failed({ErrorKind::unavailable, std::strerror(error_), Retry::later});
    default:
      broken_ = true;
      return failed(tls_error(ssl_, session_.get(), peer_));
  }
}

Io TlsStream::write_some(std::string_view& bytes) {
  while (!bytes.empty()) {
    if (broken_) return Io::failed;
    ssl_.ERR_clear_error();
    int sent = ssl_.SSL_write(session_.get(), bytes.data(), bounded(bytes.size()));
    if (sent <= 0) return to_io(sent, write_awaits_);
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return Io::done;
}

// Never drained: poll() does not report bytes that OpenSSL has already read.
Io TlsStream::read_some(char* buffer, size_t size, size_t& got) {
  if (broken_) return Io::failed;
  ssl_.ERR_clear_error();
  int count = ssl_.SSL_read(session_.get(), buffer, bounded(size));
  if (count <= 0) return to_io(count, read_awaits_);
  got = static_cast<size_t>(count);
  return Io::done;
}

// SSL_peek also processes what is not data: session tickets, an alert.
bool TlsStream::is_quiet() {
  char byte = 0;
  if (broken_) return false;
  ssl_.ERR_clear_error();
  int count = ssl_.SSL_peek(session_.get(), &byte, 1);
  return count <= 0 && to_io(count, read_awaits_) == Io::would_block;
}

pollfd TlsStream::wants(Sending sending) const {
  int events = sending == Sending::done ? read_awaits_ : read_awaits_ | write_awaits_;
  return {fd_.get(), static_cast<short>(events), 0};
}

const char* TlsStream::timeout_reason() const {
  return ssl_.SSL_is_init_finished(session_.get()) != 0
             ? "no answer"
             : "no TLS handshake; is this a port without TLS? use redis:// for one";
}

std::optional<std::chrono::system_clock::time_point> TlsStream::certificate_end() const {
  const X509* certificate = ssl_.SSL_get0_peer_certificate(session_.get());
  std::tm end{};
  if (certificate == nullptr ||
      ssl_.ASN1_TIME_to_tm(ssl_.X509_get0_notAfter(certificate), &end) != 1)
    return std::nullopt;
  return std::chrono::system_clock::from_time_t(timegm(&end));
}

Error TlsStream::error() const {
  return tls_error_.value_or(Error{ErrorKind::internal, "no error"});
}

namespace {

// A folder by subject hash, so that only the CAs of a chain are read: parsing the whole bundle
// takes 28 ms.
constexpr const char* kSystemAuthorities = "/etc/ssl/certs";
// Where Red Hat's systems have them, whose folder has no hashes.
constexpr const char* kSystemBundle = "/etc/pki/tls/certs/ca-bundle.crt";

Error unusable(const std::string& what, const std::string& path, const std::string& why) {
  return {ErrorKind::config, "cannot use the " + what + " \"" + path + "\": " + why};
}

enum class PathKind { file, folder };

// OpenSSL would accept a missing folder, and read a device without end.
Status check_path(const std::string& what, const std::string& path, PathKind kind) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return unusable(what, path, std::strerror(errno));
  const bool folder = kind == PathKind::folder;
  bool fit = folder ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode);
  if (fit) return Done{};
  return unusable(what, path, folder ? "it is not a folder" : "it is not a file");
}

// Without this callback OpenSSL would ask for the passphrase on the terminal.
int refuse_passphrase(char*, int, int, void* encrypted) {
  *static_cast<bool*>(encrypted) = true;
  return -1;
}

// Fills a new context from the options.
class ContextSetup {
 public:
  ContextSetup(const OpenSsl& ssl, SSL_CTX* context) : ssl_(ssl), context_(context) {}

  Status set(const TlsOptions& options) {
    ssl_.SSL_CTX_ctrl(context_, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
    ssl_.SSL_CTX_ctrl(context_, SSL_CTRL_MODE,
                      SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, nullptr);
    bool verify = options.verify == Verify::peer;
    ssl_.SSL_CTX_set_verify(context_, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                            note_rejected_names);
    if (auto ok = set_authorities(options); !ok) return ok;
    return set_certificate(options);
  }

 private:
  Status set_authorities(const TlsOptions& options) {
    if (!options.cacert.empty()) {
      auto load = ssl_.SSL_CTX_load_verify_file;
      if (auto ok = read("CA certificate", options.cacert, load); !ok) return ok;
    }
    std::string folder = options.cacertdir;
    if (!folder.empty()) {
      if (auto ok = check_path("CA folder", folder, PathKind::folder); !ok) return ok;
      // It is read at each handshake, when the working folder may be another one.
      auto path = util::absolute(folder);
      if (!path) return unusable("CA folder", folder, path.error().text);
      folder = *std::move(path);
    } else if (options.cacert.empty()) {
      return set_system_authorities();
    }
    if (!folder.empty()) ssl_.SSL_CTX_load_verify_dir(context_, folder.c_str());
    return Done{};
  }

  // As OpenSSL has it: SSL_CERT_FILE and SSL_CERT_DIR come before the system's own, and what is not
  // there is passed over. OpenSSL's own paths would be those of the system that it was built for.
  Status set_system_authorities() {
    const char* file = secure_getenv("SSL_CERT_FILE");
    const char* folder = secure_getenv("SSL_CERT_DIR");
    if (file == nullptr && folder == nullptr) {
      file = kSystemBundle;
      folder = kSystemAuthorities;
    }
    if (file != nullptr && access(file, R_OK) == 0) {
      if (auto ok = read("CA certificate", file, ssl_.SSL_CTX_load_verify_file); !ok) return ok;
    }
    if (folder != nullptr) ssl_.SSL_CTX_load_verify_dir(context_, folder);
    return Done{};
  }

  Status set_certificate(const TlsOptions& options) {
    if (options.cert.empty() && options.key.empty()) return Done{};
    if (options.cert.empty()) {
      return Error{ErrorKind::config, "--key requires --cert"};
    }
    auto certificate = ssl_.SSL_CTX_use_certificate_chain_file;
    if (auto ok = read("certificate", options.cert, certificate); !ok) return ok;
    return set_key(options.key.empty() ? options.cert : options.key);
  }

  Status set_key(const std::string& path) {
    bool encrypted = false;
    ssl_.SSL_CTX_set_default_passwd_cb(context_, refuse_passphrase);
    ssl_.SSL_CTX_set_default_passwd_cb_userdata(context_, &encrypted);
    auto load = [this](SSL_CTX* context, const char* file) {
      return ssl_.SSL_CTX_use_PrivateKey_file(context, file, SSL_FILETYPE_PEM);
    };
    auto ok = read("private key", path, load);
    ssl_.SSL_CTX_set_default_passwd_cb_userdata(context_, nullptr);
    if (encrypted) {
      return unusable("private key", path,
                      "it is encrypted, and rlock never asks for a passphrase");
    }
    return ok;
  }

  template <class Load>
  Status read(const std::string& what, const std::string& path, Load load) {
    if (auto ok = check_path(what, path, PathKind::file); !ok) return ok;
    ssl_.ERR_clear_error();
    if (load(context_, path.c_str()) == 1) return Done{};
    return unusable(what, path, reason(what));
  }

  // The first error says what is wrong with the file, later ones only what failed because of it.
  std::string reason(const std::string& what) const {
    unsigned long code = ssl_.ERR_peek_error();
    if (ERR_SYSTEM_ERROR(code)) return std::strerror(ERR_GET_REASON(code));
    bool mismatch =
        ERR_GET_LIB(code) == ERR_LIB_X509 && ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH;
    if (mismatch) return "it does not match the certificate";
    // OpenSSL's security level rejects it: the key is too small, the digest too weak.
    const char* text =
        ERR_GET_LIB(code) == ERR_LIB_SSL ? ssl_.ERR_reason_error_string(code) : nullptr;
    return text != nullptr ? text : "it contains no " + what + " in PEM format";
  }

  const OpenSsl& ssl_;
  SSL_CTX* context_;
};

bool is_numeric(const std::string& host) {
  std::array<char, sizeof(in6_addr)> address;
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

// OpenSSL would accept any name for an empty one, and any subdomain for one that begins with a dot.
bool is_unverifiable(const std::string& name) {
  return name.empty() || name.starts_with('.');
}

// A final dot is for the resolver only: certificates and SNI have none.
std::string without_final_dot(std::string host) {
  if (host.ends_with('.')) host.pop_back();
  return host;
}

}  // namespace

struct Tls::Parts {
  struct FreeContext {
    const OpenSsl* ssl;
    void operator()(SSL_CTX* context) const noexcept { ssl->SSL_CTX_free(context); }
  };

  explicit Parts(const OpenSsl& library)
      : ssl(library),
        context(ssl.SSL_CTX_new(ssl.TLS_client_method()), FreeContext{&ssl}),
        wire(ssl) {
    if (context == nullptr) throw std::bad_alloc();
  }

  const OpenSsl& ssl;
  std::unique_ptr<SSL_CTX, FreeContext> context;
  WireMethod wire;
  TlsOptions options;
};

Tls::Tls(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tls::~Tls() = default;

Result<std::shared_ptr<const Tls>> Tls::make(const TlsOptions& options) {
  if (!options.sni.empty() && is_unverifiable(without_final_dot(options.sni))) {
    return Error{ErrorKind::config, "--sni \"" + options.sni + "\" is not a host name"};
  }
  TRY(auto ssl, openssl());
  auto parts = std::make_unique<Parts>(*ssl);
  TRY_STATUS(ContextSetup(*ssl, parts->context.get()).set(options));
  parts->options = options;
  return std::shared_ptr<const Tls>(new Tls(std::move(parts)));
}

const TlsOptions& Tls::options() const {
  return parts_->options;
}

Result<std::unique_ptr<Stream>> Tls::wrap(util::Fd fd, const std::string& host) const {
  const OpenSsl& ssl = parts_->ssl;
  const TlsOptions& options = parts_->options;
  std::string name = without_final_dot(options.sni.empty() ? host : options.sni);
  if (is_unverifiable(name)) {
    return Error{ErrorKind::denied,
                 "TLS: \"" + host + "\" is not a host name that can be verified"};
  }
  SslPtr session(ssl.SSL_new(parts_->context.get()), FreeSsl{&ssl});
  if (session == nullptr) throw std::bad_alloc();
  int set = 0;
  if (is_numeric(name)) {
    set = ssl.X509_VERIFY_PARAM_set1_ip_asc(ssl.SSL_get0_param(session.get()), name.c_str());
  } else {
    // Only the alternative names of a certificate count, not its common name.
    ssl.SSL_set_hostflags(
        session.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    set = ssl.SSL_set1_host(session.get(), name.c_str());
    // Fails for a name of more than 255 bytes, which no certificate can contain either.
    ssl.SSL_ctrl(session.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                 name.data());
  }
  if (set != 1) throw std::bad_alloc();
  auto own = options.cert.empty() ? OwnCertificate::none : OwnCertificate::shown;
  return std::unique_ptr<Stream>(std::make_unique<TlsStream>(ssl, std::move(session), parts_->wire,
                                                             std::move(fd), TlsPeer{name, own}));
}

}  // namespace rlock::redis
