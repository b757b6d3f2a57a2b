#pragma once

#include "run/run.hpp"

namespace rlock::run {

// Entries of nested runs have leases of their own, no longer than this whatever was asked for: the
// scripts see to it. [PROTOCOL, release]
inline constexpr Millis kLongestEntry{30'000};

struct Entered {
  Use use;
  TimePoint sent_at;  // from where the entry's lease counts
};
// Nobody in plan.around holds it any more: the lock is to be acquired like any other.
struct Outdated {};
using EnterResult = std::variant<Entered, Outdated, lock::Upgrade, lock::Interrupted>;

// Enters the lock under the first of plan.around that holds it. Waits only for an outer run to put
// its lease back, as long as Outer::patience says. An error when no server answers by the limit of
// the first contact. Whatever it does not return as Entered it has given back as far as a server
// answered.
util::Result<EnterResult> enter(const Plan& plan, lock::LockStore& store, lock::Poller& poller,
                                lock::WaitObserver& observer);

// Gives the entry back; one short try, after which it ends by itself.
void leave(const Plan& plan, const Use& use, lock::LockStore& store, lock::Poller& poller);

// The request that renews a use of the lock that `claim` asked for.
lock::RenewCall renew_call(const lock::AcquireCall& claim, const Use& use);

}  // namespace rlock::run
