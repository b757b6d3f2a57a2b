#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "run/guard.hpp"
#include "run/run.hpp"
#include "util/result.hpp"

namespace rlock::run {

// The guard, forked while the acquire is on its way: the fork then takes no time of its own.
// [docs/SUPERVISION.md, "Order of a run"]
class EarlyGuard {
 public:
  EarlyGuard(const Plan& plan, const Signals& signals, SharedState& state)
      : plan_(plan), signals_(signals), state_(state) {}

  // Forks it, if there is none yet. Where it cannot be had nothing is reported: after the grant it
  // is tried again.
  void prepare();
  // The same of a guard that is to be contained: what is refused is known before a lock is asked
  // for.
  Status contain();
  // Ends and reaps it.
  void discard() { guard_.reset(); }
  // None where it was not forked, or cannot start what runs under the lock.
  std::unique_ptr<Guard> take() { return std::move(guard_); }

 private:
  Status fork();

  const Plan& plan_;
  const Signals& signals_;
  SharedState& state_;
  std::unique_ptr<Guard> guard_;
};

}  // namespace rlock::run
