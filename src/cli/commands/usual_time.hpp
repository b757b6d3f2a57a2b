#pragma once

#include <optional>
#include <string>

#include "cli/commands/session.hpp"
#include "lock/inspector.hpp"
#include "run/run.hpp"

namespace rlock::cli {

// How long the runs under a lock usually take, by its history. A waiter reads that over the
// connection of its wait, between two requests: when it first sees a holder, and whenever it sees
// another one.
class UsualTime {
 public:
  // A read ends early at a signal (`signal_fd` is readable), and at `deadline`, that of the wait.
  UsualTime(lock::LockInspector& inspector, lock::LockName name, int signal_fd, TimePoint deadline)
      : inspector_(inspector), name_(std::move(name)), signal_fd_(signal_fd), deadline_(deadline) {}

  void update(const lock::Holder& holder);
  // None where nothing is known.
  std::optional<Millis> value() const { return value_; }

 private:
  lock::LockInspector& inspector_;
  const lock::LockName name_;
  const int signal_fd_;
  const TimePoint deadline_;
  std::string seen_holder_;
  std::optional<Millis> value_;
};

// For the wait of `plan`; none for a lock without a history, as those of other clients.
std::optional<UsualTime> usual_time(const run::Plan& plan, Session& session,
                                    const run::Signals& signals);

}  // namespace rlock::cli
