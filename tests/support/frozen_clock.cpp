#include "support/frozen_clock.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace rlock::test {

FrozenClock::FrozenClock() {
  const int fd = open(folder_.file("clock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* memory = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, sizeof *micros_) == 0) {
    memory = mmap(nullptr, sizeof *micros_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot map a clock");
  micros_ = static_cast<volatile int64_t*>(memory);
}

FrozenClock::~FrozenClock() {
  munmap(const_cast<int64_t*>(micros_), sizeof *micros_);
}

std::unique_ptr<RedisServer> FrozenClock::serve(std::vector<std::string> args,
                                                std::vector<std::string> before) const {
  setenv("CLOCK_FROZEN_FILE", folder_.file("clock").c_str(), 1);
  setenv("LD_PRELOAD", SHIFTED_CLOCK, 1);
  auto server =
      std::make_unique<RedisServer>(std::move(args), Listen::unix_socket, std::move(before));
  unsetenv("LD_PRELOAD");
  unsetenv("CLOCK_FROZEN_FILE");
  return server;
}

}  // namespace rlock::test
