// Runs in rlock, on the main thread.
#pragma once

#include "run/run.hpp"

namespace rlock::run {

// Lost: the server does not know the outer run as a holder.
using EnterResult = std::variant<HeldLock, lock::Lost, lock::Upgrade, lock::Interrupted>;

// Enters the lock under the first of plan.outer_runs that holds it; Lost: none does, and the lock
// is to be acquired like any other. Waits only for an outer run to put its lease back, for
// OuterRun::put_back_grace. An error when no server answers by the limit of the first contact.
// Unless it returns a HeldLock it has released its entry as far as a server answered.
Result<EnterResult> enter_outer_run(const Plan& plan, const Connections& connections,
                                    lock::Poller& poller, lock::WaitObserver& observer);

// Releases the entry; one short try, after which it ends by itself.
void leave_outer_run(const Plan& plan, const HeldLock& held_lock, lock::LockStore& store,
                     lock::Poller& poller);

// The request that renews a use of the lock that `claim` asked for.
lock::RenewCall renew_call(const lock::AcquireCall& claim, const HeldLock& held_lock);

}  // namespace rlock::run
