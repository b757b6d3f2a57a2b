// Runs in rlock, on both threads, and in the background renewer.
#pragma once

#include <functional>
#include <optional>
#include <variant>

#include "lock/inspector.hpp"
#include "lock/lease.hpp"
#include "run/plan.hpp"
#include "run/run_end.hpp"

// What a run asks the server about the lock that it holds.
namespace rlock::run {

// How a run reaches the server.
struct Connections {
  lock::LockStore& store;              // made the first contact
  lock::MakeStore make_store;          // for the renewal thread
  lock::MakeInspector make_inspector;  // for a nested run; unused without plan.outer_runs
};

// The settings for a lease of `ttl` that `replicas` replicas confirm.
lock::LeaseMonitor::Settings lease_settings(Millis ttl, uint64_t replicas, Millis kill_after,
                                            lock::Watchdog watchdog);
lock::LeaseMonitor::Settings lease_settings(const Plan& plan, const lock::HeldLock& held_lock);

// The time from which the lease counts, or why the command must not run.
using Confirmed = std::variant<TimePoint, lock::Lost, Error>;

// Renews a grant that too few replicas have confirmed (`unconfirmed` says why) until they confirm a
// renewal, within the limits of the wait. A signal at the poller's interrupt ends this, too.
Confirmed await_replicas(const Plan& plan, const lock::HeldLock& held_lock, Error unconfirmed,
                         lock::LockStore& store, lock::Poller& poller);

// Call just before the command starts. Returns the time from which the lease counts, or how it was
// lost. A suspended waiter may wake up with a lease that is nearly over: if less than half of the
// ttl is left, the lease is renewed first. A signal at the poller's interrupt ends the try.
std::variant<TimePoint, LeaseEnd> fresh_lease(const Plan& plan, const lock::HeldLock& held_lock,
                                              lock::LockStore& store, lock::Poller& poller);

// Decides whether the attempts to release end; asked whenever `fd` is readable (-1: never).
struct ReleaseInterrupt {
  int fd = -1;
  std::function<bool()> ends{};
};

// Releases the lock, retrying over fresh connections until `until` or the interrupt. If no server
// confirmed it, returns the error of the last attempt that was not interrupted. call.once->asked
// counts from the call of this function.
Result<lock::ReleaseReply> release_until(lock::LockStore& store, lock::ReleaseCall call,
                                         TimePoint until, const ReleaseInterrupt& interrupt = {});

// The request that renews the held lock that `claim` asked for, and restores a lease that the
// server has lost; `lease_end` as in lock::Restore.
lock::RenewCall renew_call(const lock::Claim& claim, const lock::HeldLock& held_lock,
                           std::optional<TimePoint> lease_end);

}  // namespace rlock::run
