// Runs in rlock, on the main thread; fork_contained() also in the guard.
#pragma once

#include <sys/types.h>

#include "run/plan.hpp"
#include "run/shared_state.hpp"
#include "util/result.hpp"

namespace rlock::run {

// Forks the guard of a contained run, like fork(). The guard, which begins with all signals
// blocked, returns from this in its namespaces and has sent a byte over `line`. If the kernel
// refuses them, the guard exits and stores the error in the state's start_error. Async-signal-safe
// in the guard.
pid_t fork_contained(Contain how, SharedState& state, int line);

// Whether `how` works on this host; ErrorKind::system says why not.
Status try_to_contain(Contain how);

// The error if fork_contained() could not create a process; reads errno.
Error cannot_contain(Contain how);

// Waits until the guard `pid` at the other end of `line` is in its namespaces. ErrorKind::system
// says why the kernel refuses them; the guard is dead then, but not reaped.
Status await_contained(Contain how, pid_t pid, int line, SharedState& state);

}  // namespace rlock::run
