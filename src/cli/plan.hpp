#pragma once

#include <vector>

#include "cli/held_locks.hpp"
#include "cli/session.hpp"
#include "cli/settings/run_settings.hpp"
#include "run/run.hpp"

namespace rlock::cli {

// What surrounds a run.
struct Environment {
  std::vector<HeldRecord> outer_locks;  // of RLOCK_HELD
  TimePoint now;                        // from here on --wait counts
};
Environment present_environment();

// The plan of a run or an acquisition; nothing changes it afterwards. What the grant adds is in the
// run::HeldLock.
run::Plan make_plan(const RunSettings& settings, const Session& session,
                    const Environment& environment);

}  // namespace rlock::cli
