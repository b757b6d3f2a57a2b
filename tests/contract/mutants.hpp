#pragma once

#include <vector>

#include "contract/lab.hpp"

namespace rlock::contract {

// A rule of the scripts left out, and how the name of the case that must fail begins.
struct Mutant {
  const char* rule;
  std::vector<Mutation> change;
  const char* caught_by;
};

// Of the rules for waiters at rest.
const std::vector<Mutant>& rest_mutants(Way way);
// Of the rules for what is done once.
const std::vector<Mutant>& once_mutants(Way way);

}  // namespace rlock::contract
