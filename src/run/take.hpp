#pragma once

#include <variant>

#include "run/early_guard.hpp"
#include "run/run.hpp"

namespace rlock::run {

// A lock that is held, and nothing runs under it yet.
struct AcquiredLease {
  lock::Token token;
  TimePoint granted_at;  // from where the lease counts
  lock::GrantReach reach = lock::GrantReach::everywhere;
  uint64_t slot = 0;
  TimePoint asked_at{};  // when the acquisition began
};

// Nobody wants the lock any more.
struct CalledOff {};

// Waits for plan.claim as plan.limits say. Either the lock, with at least half of its lease left,
// or the result of the wait; then everything was cancelled as far as a server answered. With the
// lock, plan.claim has the owner under which it was granted. CalledOff once the descriptor
// `call_off` is readable or hung up; -1 for none. `early`, if any, has its guard only where the
// lock was granted at once.
std::variant<AcquiredLease, CalledOff, RunOutcome> acquire_lock(Plan& plan, lock::LockStore& store,
                                                                Observer& observer,
                                                                Signals& signals, int call_off = -1,
                                                                EarlyGuard* early = nullptr);

}  // namespace rlock::run
