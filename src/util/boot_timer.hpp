#pragma once

#include <poll.h>

#include <span>

#include "util/clock.hpp"
#include "util/fd.hpp"

namespace rlock::util {

// Lets poll(2) wait until a time of BootClock: poll's own timeout stands still while the host is
// suspended, so a renewal that was due meanwhile would come late by as much.
class BootTimer {
 public:
  BootTimer() noexcept;

  // Readable from the time it is armed for until it is armed again; -1 where the system has no
  // descriptor left.
  int fd() const { return fd_.get(); }
  // TimePoint::max() for never.
  void arm(TimePoint at) noexcept;
  // Leaves the descriptor open: in a forked process its number may be another's by now.
  void abandon() noexcept { fd_.release(); }

 private:
  Fd fd_;
  TimePoint armed_ = TimePoint::max();
};

// poll(2) until `until` by BootClock, with one timer a thread. Returns how many of `fds` have
// events; 0 when the time has come, after a signal, or early: callers look at the clock.
int poll_until(std::span<pollfd> fds, TimePoint until) noexcept;

}  // namespace rlock::util
