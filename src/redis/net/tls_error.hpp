#pragma once

#include <string>

#include "redis/net/openssl.hpp"
#include "util/result.hpp"

namespace rlock::redis {

enum class OwnCertificate { none, shown };

struct TlsPeer {
  std::string name;    // that its certificate must be for
  OwnCertificate own;  // whether it gets a client certificate
};

// For SSL_CTX_set_verify: remembers, for tls_error() in this thread, the names in a certificate
// that is rejected.
int note_rejected_names(int accepted, X509_STORE_CTX* context);

// Why TLS itself failed just now in this thread, with advice where a user can do something about
// it. ErrorKind::denied: one side does not trust the other, or the peer does not speak TLS; else
// ErrorKind::unavailable, to be tried again.
Error tls_error(const OpenSsl& ssl, const SSL* session, const TlsPeer& peer);

// The peer does not speak TLS.
Error no_tls_error();

}  // namespace rlock::redis
