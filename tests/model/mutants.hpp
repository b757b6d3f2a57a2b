#pragma once

#include <vector>

#include "model/explore.hpp"

namespace rlock::model {

// A rule of the scripts left out, what it breaks, and the smallest bounds in which that shows.
struct Mutant {
  const char* rule;
  std::vector<contract::Mutation> change;
  const char* breaks;
  Bounds within;
};

// Fails the test case unless it is caught.
void check_caught(const Mutant& mutant);

}  // namespace rlock::model
