#pragma once

#include <vector>

#include "simulation/scenario.hpp"

// The kinds of worlds that are simulated, by name.
namespace rlock::sim {

const std::vector<Setting>& worlds();
// Throws std::out_of_range for a name that is unknown.
const Setting& world_named(const std::string& name);

}  // namespace rlock::sim
