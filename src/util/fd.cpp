#include "util/fd.hpp"

#include <unistd.h>

namespace rlock::util {

void Fd::reset(int fd) noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

}  // namespace rlock::util
