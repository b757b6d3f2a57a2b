#pragma once

#include "cli/run_observer.hpp"
#include "run/run.hpp"

namespace rlock::cli {

// --fail-open: whether `outcome` is that no server answered at all. One that refuses, is not ready
// or told a waiter its place has answered: somebody may hold the lock.
bool unanswered(const run::Outcome& outcome);

// Runs the plan's command without the lock, but supervised as ever: signals, --max-run, exit code,
// event log.
run::Outcome run_unlocked(run::Plan plan, RunObserver& observer, run::Signals& signals);

}  // namespace rlock::cli
