#include "util/clock.hpp"

#include <time.h>

#include <algorithm>
#include <limits>

namespace rlock {

BootClock::time_point BootClock::now() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return time_point(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
}

uint64_t wall_micros() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_REALTIME, &ts);
  return static_cast<uint64_t>(ts.tv_sec) * 1'000'000 + static_cast<uint64_t>(ts.tv_nsec) / 1'000;
}

int poll_timeout(TimePoint now, TimePoint then) noexcept {
  if (then == TimePoint::max()) return -1;
  if (then <= now) return 0;
  auto left = std::chrono::ceil<Millis>(then - now).count();
  return static_cast<int>(std::min<Millis::rep>(left, std::numeric_limits<int>::max()));
}

}  // namespace rlock
