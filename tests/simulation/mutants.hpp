#pragma once

#include <vector>

#include "simulation/rules.hpp"
#include "simulation/scenario.hpp"

namespace rlock::sim {

// A rule left out, the world in which that does harm, and what must be noticed.
struct Mutant {
  const char* name;
  const char* world;
  Check noticed;
  Broken broken;
};
const std::vector<Mutant>& mutants();

}  // namespace rlock::sim
