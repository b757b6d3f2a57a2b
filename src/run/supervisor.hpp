// Runs in rlock, on the main thread.
#pragma once

#include <memory>

#include "run/guard.hpp"
#include "run/renewer.hpp"
#include "run/run.hpp"

namespace rlock::run {

// Has the guard start the command, and watches the command, the guard and the renewal thread until
// all processes that have to end are gone. The release completes the RunEnd. If rlock cannot stop a
// process, it waits for it and keeps the lock, unless the lease is lost. `guard`: forked before the
// grant, or null; afterwards the guard of the command. Its work is done then, so the caller need
// not wait for its exit. ErrorKind::system if the kernel refuses a process or a descriptor; then
// the command has not run.
Result<RunEnd> supervise(const RunContext& context, const lock::HeldLock& held_lock,
                         SharedLease& lease, std::unique_ptr<Guard>& guard);

}  // namespace rlock::run
