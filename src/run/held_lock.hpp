// Runs in rlock, on both threads, and in the background renewer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lock/timing.hpp"
#include "lock/wait.hpp"

namespace rlock::run {

// A held lock: its owner, how it is held, and since when. A nested run has the owner and token of
// the outer run, and its own entry.
struct HeldLock {
  lock::Owner owner;
  lock::Token token;
  lock::Limit limit = lock::Limit::exclusive();
  Millis min_hold{0};
  lock::Entry entry = lock::Entry::outer();
  uint64_t slot = 0;       // as granted; 0: the lock has no slots
  TimePoint granted_at{};  // the lease counts from here
  TimePoint asked_at{};    // when the acquisition began

  bool nested() const { return entry != lock::Entry::outer(); }
  // The length of its lease, if the plan asks for `ttl`.
  Millis lease(Millis ttl) const {
    return nested() ? std::min(ttl, timing::kLongestNestedLease) : ttl;
  }
  // The time from the first request until the granted request.
  Millis waited() const {
    return nested() ? Millis(0) : std::chrono::duration_cast<Millis>(granted_at - asked_at);
  }
};

// The lock as it was granted to `claim`.
inline HeldLock held_lock_of(const lock::AcquireCall& claim, const lock::Acquired& acquired) {
  return {.owner = acquired.owner,
          .token = acquired.token,
          .limit = claim.limit,
          .min_hold = claim.min_hold,
          .slot = acquired.slot,
          .granted_at = acquired.sent_at,
          .asked_at = acquired.asked_at};
}

}  // namespace rlock::run
