#include "util/boot_timer.hpp"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

namespace rlock::util {
namespace {

using namespace std::chrono_literals;

// How late the end of a suspend may be noticed if there is no timer, or no room for it.
constexpr auto kLongestWithoutTimer = 1s;

struct Waiting {
  std::optional<BootTimer> timer;
  pid_t process = 0;             // the process that made the timer
  std::array<pollfd, 64> fds{};  // an array, because poll_until() must not fail for want of memory
};

thread_local Waiting waiting;

// The timer of this thread. A forked process shares its parent's timer, or has closed it, so it
// makes its own.
BootTimer& timer_of_thread() {
  const pid_t process = getpid();
  if (waiting.process == process) return *waiting.timer;
  if (waiting.timer) waiting.timer->abandon();
  waiting.timer.emplace();
  waiting.process = process;
  return *waiting.timer;
}

int events_of(int polled) {
  return std::max(polled, 0);
}

}  // namespace

BootTimer::BootTimer() noexcept : fd_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {}

void BootTimer::arm(TimePoint at) noexcept {
  if (at == armed_) return;
  armed_ = at;
  itimerspec spec{};  // zero disarms
  if (at != TimePoint::max()) {
    const auto since_boot = std::max<Nanos>(at.time_since_epoch(), 1ns);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    spec.it_value.tv_sec = seconds.count();
    spec.it_value.tv_nsec = (since_boot - seconds).count();
  }
  timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

int poll_until(std::span<pollfd> fds, TimePoint until) noexcept {
  if (until == TimePoint::max()) return events_of(poll(fds.data(), fds.size(), -1));
  const TimePoint now = BootClock::now();
  if (until <= now) return events_of(poll(fds.data(), fds.size(), 0));
  BootTimer& timer = timer_of_thread();
  if (timer.fd() < 0 || fds.size() >= waiting.fds.size()) {
    until = std::min<TimePoint>(until, now + kLongestWithoutTimer);
    return events_of(poll(fds.data(), fds.size(), poll_timeout(now, until)));
  }
  timer.arm(until);
  pollfd* const last = std::copy(fds.begin(), fds.end(), waiting.fds.begin());
  *last = {timer.fd(), POLLIN, 0};
  const int ready = poll(waiting.fds.data(), fds.size() + 1, -1);
  std::copy_n(waiting.fds.begin(), fds.size(), fds.begin());
  return events_of(ready) - (last->revents != 0 ? 1 : 0);
}

}  // namespace rlock::util
