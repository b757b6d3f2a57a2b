#pragma once

#include "cli/run_observer.hpp"
#include "run/run.hpp"

namespace rlock::cli {

// --fail-open: whether `outcome` is that no server answered, not one that said no. One that told a
// waiter its place has answered: somebody holds the lock.
bool unanswered(const run::Outcome& outcome, const RunObserver& observer);

// Runs the plan's command without the lock, but supervised as ever: signals, --max-run, exit code,
// event log.
run::Outcome run_unlocked(run::Plan plan, RunObserver& observer, run::Signals& signals);

}  // namespace rlock::cli
