#include <doctest/doctest.h>

#include "contract/lab.hpp"

namespace rlock::contract {

std::vector<NamedCase>& cases() {
  static std::vector<NamedCase> all;
  return all;
}

bool add_case(const char* file, const char* name, void (*run)(Lab&)) {
  cases().push_back({file, name, run});
  return true;
}

bool add_mutant(const char* file, const char* rule, std::vector<Mutation> change) {
  need(cases().back().file == file, "a mutant without a case");
  cases().back().mutants.push_back({rule, std::move(change)});
  return true;
}

namespace {

// What went wrong; empty when the case holds.
std::string run_case(const NamedCase& named, const std::vector<Mutation>& mutations = {}) {
  Lab lab(mutations);
  if (!lab.mutations_applied()) return "";
  try {
    named.run(lab);
  } catch (const std::exception& broken) {
    return broken.what();
  }
  return "";
}

void check_cases() {
  for (const NamedCase& named : cases()) {
    const std::string broken = run_case(named);
    CHECK_MESSAGE(broken.empty(), named.name, ": ", broken);
  }
}

}  // namespace

TEST_CASE("the scripts keep every rule of the native protocol") {
  check_cases();
}

TEST_CASE("each rule that is left out fails its case") {
  for (const NamedCase& named : cases()) {
    for (const Mutant& mutant : named.mutants) {
      const std::string rule = mutant.rule;
      const bool applied = test::ScriptSet(mutant.change).all_applied();
      CHECK_MESSAGE(applied, rule, ": no place to change");
      if (!applied) continue;
      CHECK_MESSAGE(!run_case(named, mutant.change).empty(), rule, " is not caught by ",
                    named.name);
    }
  }
}

}  // namespace rlock::contract
