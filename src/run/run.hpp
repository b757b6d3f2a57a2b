// Runs in rlock, on the main thread.
#pragma once

#include <variant>

#include "run/observer.hpp"
#include "run/plan.hpp"
#include "run/requests.hpp"
#include "run/run_end.hpp"
#include "run/signals.hpp"

// The main job: acquires the lock, runs the command under guard and renewal, and releases the lock.
// [docs/SUPERVISION.md]
namespace rlock::run {

class OlderChildren;
class SharedState;

// One run and everything that it needs.
struct RunContext {
  const Plan& plan;
  const Connections& connections;
  Observer& observer;
  Signals& signals;
  SharedState& state;
  const OlderChildren& older_children;
};

// Runs plan.argv under the lock. `signals` was taken before, so signals are blocked. Leaves no
// process, thread or descriptor of its own behind.
RunOutcome hold_and_run(const Plan& plan, const Connections& connections, Observer& observer,
                        Signals& signals);

using Acquisition = std::variant<lock::HeldLock, RunOutcome>;

// Waits for plan.claim within plan.limits. Returns the lock, with at least half of its lease left,
// or the result of the wait; then everything was cancelled as far as a server answered. If the
// descriptor `call_off` is readable or hung up, the lock is no longer wanted; -1 for none.
Acquisition acquire_lock(const Plan& plan, lock::LockStore& store, Observer& observer,
                         Signals& signals, int call_off);

}  // namespace rlock::run
