// Runs in rlock, on the main thread.
#pragma once

#include <memory>

#include "run/guard.hpp"
#include "run/renewer.hpp"
#include "run/run.hpp"

namespace rlock::run {

// Has the guard start the command, and watches over both and the renewal thread until the command
// and all that had to end with it are gone. The release completes the RunEnd. What cannot be ended
// is waited for, and the lock kept, unless the lease is lost. `guard`: forked before the grant,
// if any; afterwards that of the command, which has nothing more to do, so that its own
// end need not be waited for. ErrorKind::system where a process or a descriptor is refused: then
// nothing has run.
Result<RunEnd> supervise(const RunContext& context, const HeldLock& held_lock, SharedLease& lease,
                         std::unique_ptr<Guard>& guard);

}  // namespace rlock::run
