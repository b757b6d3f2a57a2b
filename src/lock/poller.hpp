#pragma once

#include <poll.h>

#include <algorithm>
#include <array>

#include "lock/store.hpp"

namespace rlock::lock {

enum class PollResult { done, deadline, interrupted };
enum class Interruptible { yes, no };  // no: while cancelling or releasing

// Drives requests in flight. Tests replace it by one with a fake clock.
class Poller {
 public:
  virtual ~Poller() = default;
  virtual TimePoint now() const = 0;
  // Until the request is done, the deadline passes or the interrupt fires. A request that is not
  // done may be driven on later.
  virtual PollResult drive(Request& request, TimePoint deadline,
                           Interruptible interruptible = Interruptible::yes) = 0;
  // Lets time pass; never returns `done`.
  virtual PollResult pause(TimePoint until, Interruptible interruptible = Interruptible::yes) = 0;
};

// Real time. An interrupt that is readable (or hung up) ends a drive early; -1 for none. Never
// reads them.
class SystemPoller final : public Poller {
 public:
  explicit SystemPoller(int interrupt_fd = -1, int other_fd = -1)
      : interrupts_{{{interrupt_fd, POLLIN, 0}, {other_fd, POLLIN, 0}}} {}
  // The interrupt is that nobody reads from `fd` any more, whatever can be read from it.
  static SystemPoller until_reader_is_gone(int fd) {
    SystemPoller poller(fd);
    poller.interrupts_.front().events = 0;
    return poller;
  }
  TimePoint now() const override { return BootClock::now(); }
  PollResult drive(Request& request, TimePoint deadline,
                   Interruptible interruptible = Interruptible::yes) override;
  PollResult pause(TimePoint until, Interruptible interruptible = Interruptible::yes) override;

 private:
  // True when an interrupt fired.
  bool poll_until(std::vector<pollfd> fds, TimePoint until, Interruptible interruptible) const;

  std::array<pollfd, 2> interrupts_;
};

inline Error no_answer(const std::string& server) {
  return {ErrorKind::unavailable, server + ": no answer in time", Retry::later};
}

// Drives to the end: the result, or no_answer() at the deadline or interrupt.
template <class T>
Result<T> finish(Poller& poller, InFlight<T> request, TimePoint deadline, const std::string& server,
                 Interruptible interruptible = Interruptible::yes) {
  if (poller.drive(*request, deadline, interruptible) == PollResult::done) return request->take();
  return no_answer(server);
}

struct RetryLimits {
  Millis connect;  // how long a failure that may pass (a restart, a fail-over) is retried
  Millis answer;   // how much longer a server that is silent may take
};

// As finish(), but a failure that may pass is retried within the limits. `start` sends the request
// once for each attempt.
template <class Start>
auto finish_with_retries(Poller& poller, const std::string& server, RetryLimits limits, Start start)
    -> decltype(start()->take()) {
  constexpr Millis kPause{50};
  const TimePoint give_up = poller.now() + limits.connect;
  const TimePoint end = give_up + limits.answer;
  while (true) {
    // Half of the time: where a connection is stuck, a fresh one has the other half.
    const TimePoint attempt_end =
        std::min(end, poller.now() + (limits.connect + limits.answer) / 2);
    auto result = finish(poller, start(), attempt_end, server);
    if (result || result.error().retry == Retry::never) return result;
    const TimePoint until = poller.now() >= attempt_end ? end : give_up;
    if (poller.now() + kPause >= until) return result;
    poller.pause(poller.now() + kPause);
  }
}

}  // namespace rlock::lock
