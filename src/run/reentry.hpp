#pragma once

#include "run/run.hpp"

namespace rlock::run {

struct Entered {
  HeldLock held_lock;
  TimePoint sent_at;  // from where the entry's lease counts
};
// Nobody in plan.around holds it any more: the lock is to be acquired like any other.
struct NoneHeld {};
using EnterResult = std::variant<Entered, NoneHeld, lock::Upgrade, lock::Interrupted>;

// Enters the lock under the first of plan.around that holds it. Waits only for an outer run to put
// its lease back, as long as Outer::patience says. An error when no server answers by the limit of
// the first contact. Whatever it does not return as Entered it has given back as far as a server
// answered.
Result<EnterResult> enter_outer_run(const Plan& plan, const Connections& connections,
                                    lock::Poller& poller, lock::WaitObserver& observer);

// Gives the entry back; one short try, after which it ends by itself.
void leave_outer_run(const Plan& plan, const HeldLock& held_lock, lock::LockStore& store,
                     lock::Poller& poller);

// The request that renews a use of the lock that `claim` asked for.
lock::RenewCall renew_call(const lock::AcquireCall& claim, const HeldLock& held_lock);

}  // namespace rlock::run
