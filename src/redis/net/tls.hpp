#pragma once

#include <memory>
#include <string>
#include <utility>

#include "redis/net/socket.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::redis {

enum class Verify { peer, nothing };

// The options of the same names; empty if not given.
struct TlsOptions {
  std::string cacert;
  std::string cert;
  std::string key;  // empty: it is in the file of the certificate
  std::string sni;  // the name to request and to verify instead of the URL's host
  Verify verify = Verify::peer;
};

// The CAs to trust and rlock's own certificate, shared by all connections and threads. If a
// connection fails before its server has sent anything, the files may have been replaced, so a
// thread of their own reads them again, at most once a second. Later connections use what it has
// read, but only if all of it can be used.
class Tls {
 public:
  // Loads OpenSSL and reads the files. ErrorKind::config: the library is missing or a file cannot
  // be used; the text names the file and contains nothing of its content. Never asks for a
  // passphrase.
  static Result<std::shared_ptr<const Tls>> make(const TlsOptions& options);

  // Starts TLS over a connected socket. The peer must prove with a certificate of a trusted CA that
  // it is `host`, a name or a numeric address. ErrorKind::denied if `host` is neither, because then
  // the peer cannot prove it.
  Result<std::unique_ptr<Stream>> wrap(util::Fd fd, const std::string& host) const;

  const TlsOptions& options() const { return options_; }

  struct Files;

 private:
  Tls(std::shared_ptr<Files> files, const TlsOptions& options)
      : files_(std::move(files)), options_(options) {}

  std::shared_ptr<Files> files_;
  TlsOptions options_;
};

}  // namespace rlock::redis
