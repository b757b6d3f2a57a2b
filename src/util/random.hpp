#pragma once

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace rlock::util {

// A source of randomness: the system's in the program, a printed seed in the tests.
class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t next() = 0;
};

// getrandom(2): safe for owner ids, which must never repeat.
class SystemRandom final : public Random {
 public:
  uint64_t next() override {
    uint64_t value = 0;
    // The kernel delivers eight bytes as a whole or not at all. There is no fallback, because
    // without them no owner id is safe.
    while (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
      if (errno != EINTR) std::abort();
    }
    return value;
  }
};

// 128 random bits as 32 lower-case hexadecimal digits.
inline std::string random_hex(Random& random) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(32);
  for (int half = 0; half < 2; ++half) {
    uint64_t bits = random.next();
    for (int digit = 0; digit < 16; ++digit, bits >>= 4) text.push_back(kDigits[bits & 15]);
  }
  return text;
}

}  // namespace rlock::util
