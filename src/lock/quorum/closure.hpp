#pragma once

#include "lock/quorum/merge.hpp"

// Changes that depend on what the servers have: all are asked for that first, then sent a request
// each, and a majority at least has to carry it out.
namespace rlock::lock {

// Closes or opens the lock. A server that was away may have an older closure, or none. Where too
// few could be closed those that were are opened again.
InFlight<ClosureReply> set_closure_at_all(std::vector<Member>& members, const Quorum& quorum,
                                          const ClosureCall& call);

// Removes what was marked as done. The servers agree first on what that is: up to the token of the
// last run that has ended, and not up to a time of their own, which would make the mark of a later
// run void where the clock of one of them is ahead.
InFlight<Forgotten> forget_at_all(std::vector<Member>& members, const Quorum& quorum,
                                  const ForgetCall& call);

}  // namespace rlock::lock
