#include "redis/net/tls.hpp"

#include <arpa/inet.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "redis/net/openssl.hpp"
#include "redis/net/tls_error.hpp"
#include "redis/net/tls_stream.hpp"
#include "util/file.hpp"

namespace rlock::redis {
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
