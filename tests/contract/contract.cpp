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

bool add_awaits(const char* file, const char* what) {
  need(cases().back().file == file, "no case that awaits something");
  cases().back().awaits = what;
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

// A hold by one, with nobody waiting, is stored in another form than others.
const std::vector<Mutation> kNeverFolded{{"local sole = is_new and", "local sole = false and"}};

void check_cases(const std::vector<Mutation>& form) {
  REQUIRE(test::ScriptSet(form).all_applied());
  for (const NamedCase& named : cases()) {
    const std::string broken = run_case(named, form);
    if (named.awaits.empty()) {
      CHECK_MESSAGE(broken.empty(), named.name, ": ", broken);
    } else {
      CHECK_MESSAGE(!broken.empty(), named.name, " holds: remove AWAITS below it");
      MESSAGE(named.name, " awaits ", named.awaits, ": ", broken);
    }
  }
}

}  // namespace

TEST_CASE("the scripts keep every rule of the native protocol") {
  check_cases({});
}

TEST_CASE("the scripts keep every rule where no hold is folded") {
  check_cases(kNeverFolded);
}

// Else they take twice the time.
TEST_CASE("usual requests need no rare functions") {
  Lab lab({Mutation{"  rare()\n", "  rare() redis.call('INCR', 'rare')\n"}});
  REQUIRE(lab.mutations_applied());
  lab.granted('Z');  // the ACL is asked
  lab.release('Z');
  lab.cli({"DEL", "rare"});

  lock::Token token = lab.granted('A');
  lab.renew('A', token);
  lab.release('A', lock::Entry::outer(), "exit:0");
  token = lab.granted('B');
  CHECK(lab.cli({"GET", "rare"}) == "");
  lab.queued('C');  // unfolds
  lab.cli({"DEL", "rare"});
  lab.queued('D');
  lab.queued('C');
  lab.renew('B', token);
  lab.release('B', lock::Entry::outer(), "exit:0");
  token = lab.granted('C');
  lab.renew('C', token);
  lab.release('C');
  lab.granted('D');
  lab.release('D');
  Ask slots;
  slots.limit = lock::Limit::slots(2);
  token = lab.granted('E', slots);
  lab.renew('E', token, slots);
  lab.release('E');
  Ask attempt;
  attempt.attempt = 1;
  attempt.ticket = {1000};
  token = lab.granted('F', attempt);
  lab.renew('F', token, attempt);
  attempt.attempt = 0;
  lab.renew('F', token, attempt);
  lab.release('F');
  CHECK(lab.cli({"GET", "rare"}) == "");
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
