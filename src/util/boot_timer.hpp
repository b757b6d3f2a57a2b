#pragma once

#include <poll.h>

#include <span>
#include <utility>

#include "util/clock.hpp"
#include "util/fd.hpp"

namespace rlock::util {

// Lets poll(2) wait until a time of BootClock. The timeout of poll stands still while the host is
// suspended, so a renewal that was due during a suspend would come late by the length of the
// suspend.
class BootTimer {
 public:
  BootTimer() noexcept;
  // Takes a timerfd of CLOCK_BOOTTIME that is not armed.
  explicit BootTimer(Fd timer) noexcept : fd_(std::move(timer)) {}

  // Readable from the time for which it is armed until it is armed again; -1 if the system has no
  // descriptor left.
  int fd() const { return fd_.get(); }
  // Sets the time; TimePoint::max() for never.
  void arm(TimePoint at) noexcept;
  // Leaves the descriptor open, because in a forked process its number may belong to another
  // descriptor.
  void abandon() noexcept { fd_.release(); }

 private:
  Fd fd_;
  TimePoint armed_ = TimePoint::max();
};

// poll(2) until `until` by BootClock, with one timer for each thread. Returns how many of `fds`
// have events. Returns 0 when the time has come, after a signal, or early, so callers check the
// clock.
int poll_until(std::span<pollfd> fds, TimePoint until) noexcept;

}  // namespace rlock::util
