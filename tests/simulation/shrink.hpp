#pragma once

#include <optional>
#include <string>

#include "simulation/fleet.hpp"

namespace rlock::sim {

// Leaves out of a history what it does not need to break this check: runs, faults, and what is
// wrong with network and clocks.
Scenario shrink(Scenario scenario, const Broken& broken, Check check);

// Whether that check is broken, and how.
std::optional<Violation> violation_of(const Outcome& outcome, Check check);

// The options of the program `fleet` that repeat it.
std::string replay_options(const Scenario& scenario);

// Without this in its world: late, lost, reset, doubled, drift, skew.
void leave_out(Setting& setting, const std::string& what);

}  // namespace rlock::sim
