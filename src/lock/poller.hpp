#pragma once

#include <array>

#include "lock/store.hpp"

namespace rlock::lock {

enum class PollResult { done, deadline, interrupted };
enum class Interruptible { yes, no };  // no: while cancelling or releasing

// Drives requests in flight: the only code that polls for them, and the seam for a fake clock.
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
  using Interrupts = std::array<int, 2>;

  explicit SystemPoller(int interrupt_fd = -1, int other_fd = -1)
      : interrupts_{interrupt_fd, other_fd} {}
  TimePoint now() const override { return BootClock::now(); }
  PollResult drive(Request& request, TimePoint deadline,
                   Interruptible interruptible = Interruptible::yes) override;
  PollResult pause(TimePoint until, Interruptible interruptible = Interruptible::yes) override;

 private:
  const Interrupts& interrupts_for(Interruptible interruptible) const;

  Interrupts interrupts_;
};

// Drives to the end: the result, or ErrorKind::unavailable (Retry::later) at the deadline or
// interrupt.
template <class T>
Result<T> finish(Poller& poller, InFlight<T> request, TimePoint deadline, const std::string& server,
                 Interruptible interruptible = Interruptible::yes) {
  if (poller.drive(*request, deadline, interruptible) == PollResult::done) return request->take();
  return Error{ErrorKind::unavailable, server + ": no answer in time", Retry::later};
}

}  // namespace rlock::lock
