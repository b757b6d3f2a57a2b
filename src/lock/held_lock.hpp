#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "lock/timing.hpp"
#include "lock/types.hpp"

namespace rlock::lock {

// A held lock: its owner, how it is held, and since when. A nested run has the owner and token of
// the outer run, and its own entry.
struct HeldLock {
  Owner owner;  // the owner that asked, or that of the try which won
  Token token;
  Limit limit = Limit::exclusive();
  Millis min_hold{0};
  Entry entry = Entry::outer();
  uint64_t slot = 0;                   // as granted; 0: the lock has no slots
  TimePoint granted_at{};              // before the granted request: the lease counts from here
  TimePoint asked_at{};                // when the acquisition began
  std::optional<Error> unconfirmed{};  // as in Granted

  bool nested() const { return entry != Entry::outer(); }
  // The length of its lease, if the plan asks for `ttl`.
  Millis lease(Millis ttl) const {
    return nested() ? std::min(ttl, timing::kLongestNestedLease) : ttl;
  }
  // The time from the first request until the granted request.
  Millis waited() const {
    return nested() ? Millis(0) : std::chrono::duration_cast<Millis>(granted_at - asked_at);
  }
};

}  // namespace rlock::lock
