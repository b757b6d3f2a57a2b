#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace rlock {

// CLOCK_BOOTTIME: monotonic and counting through suspend, as lease deadlines must.
// [docs/SUPERVISION.md, "Lease deadlines"]
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock, duration>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
};

using TimePoint = BootClock::time_point;
using Nanos = std::chrono::nanoseconds;
using Millis = std::chrono::milliseconds;

// Microseconds since 1970 by this host's clock: for a position in a queue, never for a deadline.
uint64_t wall_micros() noexcept;

// Seconds since 1970 by the same clock. time(2) lags behind that clock by up to a tick, so a job
// that a timer starts at midnight could belong to the day before. [clock_gettime(2),
// CLOCK_REALTIME_COARSE]
inline time_t wall_seconds() noexcept {
  return static_cast<time_t>(wall_micros() / 1'000'000);
}

// Milliseconds from `now` until `then` for poll(2): rounded up, never negative; -1 for
// TimePoint::max().
int poll_timeout(TimePoint now, TimePoint then) noexcept;

}  // namespace rlock
