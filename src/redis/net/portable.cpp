#include <nss.h>

#include <cstdint>

#include "redis/net/openssl.hpp"

// Replaces openssl.cpp in the portable flavour, in which OpenSSL is part of the program.
namespace rlock::redis {
namespace {

// A host's modules for names and users are made for its own libc. This program contains another
// libc, which they would break. The functions built into libc suffice.
[[gnu::constructor]] void load_no_modules() {
  __nss_configure_lookup("hosts", "files dns");
  __nss_configure_lookup("passwd", "files");
}

Result<const OpenSsl*> initialize() {
#define RLOCK_LINKED(name) .name = &::name,
  static const OpenSsl functions{RLOCK_OPENSSL_FUNCTIONS(RLOCK_LINKED)};
#undef RLOCK_LINKED
  // The host's configuration is for its own OpenSSL, and may ask for modules of it.
  constexpr uint64_t kOptions = OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG;
  if (functions.OPENSSL_init_ssl(kOptions, nullptr) == 1) return &functions;
  return Error{ErrorKind::config, "TLS (rediss://): OpenSSL cannot be initialised"};
}

}  // namespace

Result<const OpenSsl*> openssl() {
  static const Result<const OpenSsl*> initialised = initialize();
  return initialised;
}

}  // namespace rlock::redis
