#pragma once

#include <memory>
#include <string>

#include "redis/net/stream.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::redis {

enum class Verify { peer, nothing };

// The options of the same names; empty: not given.
struct TlsOptions {
  std::string cacert;
  std::string cacertdir;
  std::string cert;
  std::string key;  // empty: in the file of the certificate
  std::string sni;  // the name to ask for and to verify, in place of the URL's host
  Verify verify = Verify::peer;
};

struct OpenSsl;

// Whom to trust and what to show of ourselves: read once, shared by every connection and thread.
class Tls {
 public:
  // Loads OpenSSL and reads the files. ErrorKind::config: the library is missing, a file is not
  // what it should be; the text names it and holds nothing of what is in it. No passphrase is asked
  // for.
  static Result<std::shared_ptr<const Tls>> make(const TlsOptions& options);

  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;
  ~Tls();

  // TLS over a connected socket: the peer must prove by a chain to a trusted authority that it is
  // `host`, a name or a numeric address. ErrorKind::denied: `host` is neither, so that nothing
  // could be proved.
  Result<std::unique_ptr<Stream>> wrap(util::Fd fd, const std::string& host) const;

  Verify verify() const;

 private:
  struct Parts;
  explicit Tls(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace rlock::redis
