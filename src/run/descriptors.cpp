#include "run/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "run/proc.hpp"
#include "util/fd.hpp"

namespace rlock::run {
namespace {

// Without close_range(2) or /proc every number has to be tried; more than that nobody passes on.
constexpr rlim_t kMostTried = 65'536;

int highest_tried() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return static_cast<int>(std::min(limit.rlim_cur, kMostTried));
}

void close_if_inherited(int fd) {
  if (fd <= 2) return;
  int flags = fcntl(fd, F_GETFD);
  if (flags >= 0 && (flags & FD_CLOEXEC) == 0) close(fd);
}

}  // namespace

void close_inherited_descriptors() {
  util::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int fd : {0, 1}) {
    if (null) dup3(null.get(), fd, O_CLOEXEC);
  }
  bool listed = for_each_number_in("/proc/self/fd", [](int fd) { close_if_inherited(fd); });
  if (listed) return;
  for (int fd = 3; fd < highest_tried(); ++fd) close_if_inherited(fd);
}

void close_all_from(unsigned first) noexcept {
  if (close_range(first, ~0U, 0) == 0) return;
  for (int fd = static_cast<int>(first); fd < highest_tried(); ++fd) close(fd);
}

}  // namespace rlock::run
