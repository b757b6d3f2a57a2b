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
// What plan.around says is no longer true: the lock is to be acquired like any other.
struct Outdated {};
using EnterResult = std::variant<Entered, Outdated, lock::Upgrade, lock::Interrupted>;

// Enters the lock that plan.around names, where that still holds it: no waiting. An error when no
// server answers by the limit of the first contact. Whatever it does not return as Entered it has
// given back as far as a server answered. [PROTOCOL, renew / enter]
util::Result<EnterResult> enter(const Plan& plan, lock::LockStore& store, lock::Poller& poller);

// Gives the entry back; one short try, after which it ends by itself.
void leave(const Plan& plan, const Use& use, lock::LockStore& store, lock::Poller& poller);

// The request that renews a use of the lock that `claim` asked for.
lock::RenewCall renew_call(const lock::AcquireCall& claim, const Use& use);

}  // namespace rlock::run
