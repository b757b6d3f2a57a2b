#pragma once

#include <poll.h>

#include <algorithm>
#include <array>
#include <optional>

#include "lock/store.hpp"

namespace rlock::lock {

enum class PollResult { done, deadline, interrupted };
enum class Interruptible { yes, no };  // no: while cancelling or releasing

// Drives requests in flight. Tests replace it by a poller with a fake clock.
class Poller {
 public:
  virtual ~Poller() = default;
  virtual TimePoint now() const = 0;
  // Drives the request until it is done, the deadline passes or the interrupt fires. A request that
  // is not done can be driven again later.
  virtual PollResult drive(Request& request, TimePoint deadline,
                           Interruptible interruptible = Interruptible::yes) = 0;
  // Waits until `until`; never returns `done`.
  virtual PollResult pause(TimePoint until, Interruptible interruptible = Interruptible::yes) = 0;
};

// Uses real time. An interrupt that is readable (or hung up) ends a drive early; -1 for none. The
// poller never reads from interrupts.
class SystemPoller final : public Poller {
 public:
  explicit SystemPoller(int interrupt_fd = -1, int other_fd = -1)
      : interrupts_{{{interrupt_fd, POLLIN, 0}, {other_fd, POLLIN, 0}}} {}
  // The interrupt fires when no process reads from `fd` any more; data to read from `fd` do not
  // matter.
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
  // Returns true if an interrupt fired.
  bool poll_until(std::vector<pollfd> fds, TimePoint until, Interruptible interruptible) const;

  std::array<pollfd, 2> interrupts_;
};

inline Error no_answer(const std::string& server) {
  return {ErrorKind::unavailable, server + ": no answer in time", Retry::later};
}

// Drives a request to its end: returns the result, or no_answer() at the deadline or interrupt.
template <class T>
Result<T> finish(Poller& poller, InFlight<T> request, TimePoint deadline, const std::string& server,
                 Interruptible interruptible = Interruptible::yes) {
  if (poller.drive(*request, deadline, interruptible) == PollResult::done) return request->take();
  return no_answer(server);
}

// Whether a failover preserves what `store` has just acknowledged: see LockStore::check_failover().
// nullopt: the interrupt fired first.
inline std::optional<Status> outlasts_failover(LockStore& store, Poller& poller, TimePoint deadline,
                                               Millis patience) {
  auto check = store.check_failover(patience);
  if (!check) return Done{};
  const PollResult driven = poller.drive(*check, deadline);
  if (driven == PollResult::interrupted) return std::nullopt;
  return driven == PollResult::done ? check->take() : no_answer(store.server());
}

}  // namespace rlock::lock
