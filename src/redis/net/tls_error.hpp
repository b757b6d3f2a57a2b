#pragma once

#include <string>

#include "redis/net/openssl.hpp"
#include "util/result.hpp"

namespace rlock::redis {

enum class OwnCertificate { none, shown };

struct TlsPeer {
  std::string name;    // what its certificate must be for
  OwnCertificate own;  // what it sees of us
};

// Why TLS itself failed just now in this thread, in our words where a user can do something about
// it. ErrorKind::denied: one side does not trust the other, or the peer speaks no TLS; else
// ErrorKind::unavailable, to be tried again.
Error tls_error(const OpenSsl& ssl, const SSL* session, const TlsPeer& peer);

}  // namespace rlock::redis
