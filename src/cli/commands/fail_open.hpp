#pragma once

#include "cli/commands/run_observer.hpp"
#include "run/run.hpp"

namespace rlock::cli {

// --fail-open: whether `outcome` is that no server answered at all. One that refuses, is not ready
// or told a waiter its place has answered: somebody may hold the lock.
bool no_server_answered(const run::RunOutcome& outcome);

// Runs the plan's command without the lock, but supervised as ever: signals, --max-run, exit code,
// event log.
run::RunOutcome run_unlocked(run::Plan plan, RunObserver& observer, run::Signals& signals);

}  // namespace rlock::cli
