#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/redis_server.hpp"
#include "support/scratch.hpp"

namespace rlock::test {

// A wall clock that stands still where the test sets it, for servers: see shifted_clock.cpp. Throws
// std::runtime_error.
class FrozenClock {
 public:
  FrozenClock();
  FrozenClock(const FrozenClock&) = delete;
  FrozenClock& operator=(const FrozenClock&) = delete;
  ~FrozenClock();

  void set(int64_t micros) { *micros_ = micros; }
  // A server with this clock; the arguments are those of RedisServer.
  std::unique_ptr<RedisServer> serve(std::vector<std::string> args = {},
                                     std::vector<std::string> before = {}) const;

 private:
  Scratch folder_;
  volatile int64_t* micros_;
};

}  // namespace rlock::test
