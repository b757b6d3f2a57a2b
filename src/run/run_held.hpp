#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <variant>

#include "run/guard.hpp"
#include "run/run.hpp"
#include "run/shared_state.hpp"

namespace rlock::run {

// How long the leases of `claim` are counted on.
lock::LeaseMonitor::Settings lease_settings(const lock::AcquireCall& claim, Millis kill_after,
                                            lock::Watchdog watchdog);

// The renewal of a grant before anything runs under it.
lock::RenewCall first_renewal(const lock::AcquireCall& claim, const lock::Acquired& acquired);

// From where the lease counts; or why nothing may run.
using Confirmed = std::variant<TimePoint, lock::Lost, Error>;

// A grant that too few replicas have confirmed is kept, since nobody else would be confirmed
// either: it is renewed until they confirm a renewal, for as long as the wait may last. A signal at
// the poller's interrupt ends that, too.
Confirmed await_replicas(const Plan& plan, const lock::Acquired& acquired, lock::LockStore& store,
                         lock::Poller& poller);

// What came of the look at the lease just before the command starts.
struct FreshLease {
  std::optional<TimePoint> granted_at;  // from where the lease counts now; none: it is lost
  LeaseEnd lost;
};

// A waiter that slept may come back to a lease that is nearly over: with less than half the ttl
// left it is renewed first. A signal at the poller's interrupt ends the try.
FreshLease fresh_lease(const Plan& plan, const lock::Acquired& acquired, lock::LockStore& store,
                       lock::Poller& poller);

// Whether the attempts to release are to end, asked whenever `fd` is readable (-1: never).
struct ReleaseInterrupt {
  int fd = -1;
  std::function<bool()> ends{};
};

// Releases, retrying over fresh connections until `until` or the interrupt. When no server
// confirmed, the error of the last attempt that was not cut short: the lease then frees the lock.
// call.once->asked is as old as the call of this function.
Result<lock::ReleaseReply> release_until(lock::LockStore& store, lock::ReleaseCall call,
                                         TimePoint until, const ReleaseInterrupt& interrupt = {});

// A lock that is held, and all that is needed to run the command under it.
struct HeldRunContext {
  const Plan& plan;
  HeldLock held_lock;
  TimePoint granted_at;
  TimePoint asked_at;  // when the run first asked for the lock
  lock::LockStore& store;
  const lock::MakeStore& make_store;
  Observer& observer;
  Signals& signals;
  SharedState& state;
  std::unique_ptr<Guard> early_guard{};  // forked before the grant
};

// Guard, command, renewal; then the release. The lock is released on every way out, unless
// processes of the command are left that could not be ended: then it lasts as long as its lease.
RunOutcome run_held(HeldRunContext context);

}  // namespace rlock::run
