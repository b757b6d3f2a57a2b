#pragma once

#include <optional>
#include <string>

#include "cli/session.hpp"
#include "lock/inspector.hpp"
#include "run/plan.hpp"
#include "run/signals.hpp"

namespace rlock::cli {

// How long runs of a lock usually take. A waiter asks over the connection of its wait, between two
// requests.
class UsualTime {
 public:
  // For the wait of `plan`.
  UsualTime(const run::Plan& plan, Session& session, const run::Signals& signals);

  // Asks the server once for each holder. The question ends early if a signal comes, and when the
  // wait ends.
  void ask(const lock::Holder& holder);
  // nullopt: unknown.
  std::optional<Millis> known() const { return known_; }

 private:
  lock::LockInspector& history_;
  const lock::LockName name_;
  const int signal_fd_;
  const TimePoint deadline_;
  std::string seen_holder_;
  std::optional<Millis> known_;
};

}  // namespace rlock::cli
