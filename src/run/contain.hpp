// Runs in rlock, on the main thread; what is said so in the guard.
#pragma once

#include <sys/types.h>

#include "run/run.hpp"
#include "run/shared_state.hpp"
#include "util/result.hpp"

namespace rlock::run {

// As fork(), for the guard of a contained run. The guard, born with all signals blocked, returns
// from it in its namespaces and has sent a byte over `line`. It exits if it is refused there, with
// the state's start_error. Async-signal-safe in the guard.
pid_t fork_contained(Contain how, SharedState& state, int line);

// Why fork_contained() found no process: errno.
Error cannot_contain(Contain how);

// Until the guard `pid` at the other end of `line` is in its namespaces. ErrorKind::system says why
// it is refused; it is dead then, but not reaped.
Status await_contained(Contain how, pid_t pid, int line, SharedState& state);

}  // namespace rlock::run
