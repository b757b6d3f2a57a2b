// Runs in rlock, on the main thread.
#pragma once

#include <variant>

#include "run/requests.hpp"

// How a run enters a lock that an outer run holds.
namespace rlock::run {

// Lost: the server does not know the outer run as a holder.
using EnterResult = std::variant<lock::HeldLock, lock::Lost, lock::Upgrade, lock::Interrupted>;

// Enters the lock under the first of plan.outer_runs that holds it. Lost: none of them does, and
// the lock is to be acquired as usual. Waits only for an outer run to restore its lease, for
// OuterRun::restore_grace. Returns an error if no server answers within plan.limits. Unless it
// returns a lock::HeldLock, it has released its entry as far as a server answered.
Result<EnterResult> enter_outer_run(const Plan& plan, const Connections& connections,
                                    lock::Poller& poller, lock::WaitObserver& observer);

// Releases the entry with one short try; otherwise the entry expires by itself.
void leave_outer_run(const Plan& plan, const lock::HeldLock& held_lock, lock::LockStore& store,
                     lock::Poller& poller);

}  // namespace rlock::run
