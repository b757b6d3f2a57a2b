#pragma once

#include <cstdint>
#include <string>

namespace rlock::util {

// Where chance enters: the system's in the program, a printed seed in the tests.
class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t next() = 0;
};

// getrandom(2): fit for owner ids, which must never repeat.
class SystemRandom final : public Random {
 public:
  uint64_t next() override;
};

// 128 random bits as 32 lower-case hexadecimal digits.
std::string random_hex(Random& random);

}  // namespace rlock::util
