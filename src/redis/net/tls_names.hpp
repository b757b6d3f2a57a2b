#pragma once

#include <string>

#include "redis/net/openssl.hpp"

namespace rlock::redis {

// For SSL_CTX_set_verify: notes for whom the certificate is that is refused now, in this thread.
int note_names(int accepted, X509_STORE_CTX* context);

// `db1.example, 10.0.0.7`: the names of the certificate that was refused last in this thread; empty
// where it has none.
const std::string& refused_names();

}  // namespace rlock::redis
