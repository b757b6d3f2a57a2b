#include "redis/net/openssl.hpp"

#include <dlfcn.h>

#include <string>

namespace rlock::redis {
namespace {

// The soname of every OpenSSL 3. The library loads libcrypto, too, whose functions are found
// through it.
constexpr const char* kLibrary = "libssl.so.3";

Error missing(const char* why) {
  return {ErrorKind::config,
          "TLS (rediss://) needs OpenSSL 3, Debian's package libssl3 or libssl3t64: " +
              std::string(why == nullptr ? kLibrary : why)};
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Result<const OpenSsl*> load() {
  static OpenSsl functions{};
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return missing(dlerror());
#define RLOCK_FIND(name) \
  if (!find(library, #name, functions.name)) return missing(dlerror());
  RLOCK_OPENSSL_FUNCTIONS(RLOCK_FIND)
#undef RLOCK_FIND
  // Cleaning up at exit() would only cost time, and other threads may still use the library.
  if (functions.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr) != 1) {
    return missing("it cannot be initialised");
  }
  return &functions;
}

}  // namespace

Result<const OpenSsl*> openssl() {
  static const Result<const OpenSsl*> loaded = load();
  return loaded;
}

}  // namespace rlock::redis
