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
const std::vector<Mutant>& rest_mutants();
// Of what is counted.
const std::vector<Mutant>& count_mutants();
// Of the rules for what is done once over a quorum, and for attempts.
const std::vector<Mutant>& quorum_mutants();
// Of the rules for what is done once.
const std::vector<Mutant>& once_mutants();
// Of how runs end.
const std::vector<Mutant>& once_end_mutants();
// Of the rules for slots, and for what supersedes others.
const std::vector<Mutant>& slot_mutants();

// Of the rules for closures.
const std::vector<Mutant>& closure_mutants();

// The cases of each file.
const std::vector<NamedCase>& end_cases();
const std::vector<NamedCase>& mode_cases();
const std::vector<NamedCase>& crowd_cases();
const std::vector<NamedCase>& rest_cases();
const std::vector<NamedCase>& server_cases();
const std::vector<NamedCase>& history_cases();
const std::vector<NamedCase>& count_cases();
const std::vector<NamedCase>& quorum_cases();
const std::vector<NamedCase>& once_cases();
const std::vector<NamedCase>& slot_cases();
const std::vector<NamedCase>& supersede_cases();
const std::vector<NamedCase>& once_memory_cases();
const std::vector<NamedCase>& once_end_cases();
const std::vector<NamedCase>& key_cases();
const std::vector<NamedCase>& closure_cases();

}  // namespace rlock::contract
