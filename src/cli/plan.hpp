#pragma once

#include <vector>

#include "cli/held_locks.hpp"
#include "cli/session.hpp"
#include "cli/settings/run_settings.hpp"
#include "run/plan.hpp"

namespace rlock::cli {

// The surroundings of a run.
struct Environment {
  std::vector<HeldRecord> outer_locks;  // from RLOCK_HELD
  TimePoint now;                        // --wait counts from here
};
Environment present_environment();

// Makes the plan of a run or an acquisition, which nothing changes afterwards. lock::HeldLock
// contains what the grant adds.
run::Plan make_plan(const RunSettings& settings, const Session& session,
                    const Environment& environment);

}  // namespace rlock::cli
