// The suite: simulated fleets, and whether the checks would notice what is wrong.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>

#include "simulation/mutants.hpp"
#include "simulation/shrink.hpp"
#include "simulation/worlds.hpp"

namespace rlock::sim {
namespace {

// RLOCK_SIMULATION_TIMES=10, as every night: ten times as many histories.
uint64_t times() {
  const char* text = std::getenv("RLOCK_SIMULATION_TIMES");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

struct Seen {
  uint64_t histories = 0, runs = 0, commands = 0, done = 0, superseded = 0, violations = 0;
  double simulated = 0, real = 0;
};

Seen live(const Setting& setting, uint64_t seeds, const Broken& broken = {}) {
  Seen seen;
  const auto began = std::chrono::steady_clock::now();
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Outcome outcome = play(make_scenario(setting, seed), broken);
    for (const Violation& violation : outcome.violations) {
      const std::string how = to_string(violation.check);
      MESSAGE(setting.name, ", seed ", seed, ": ", how, ": ", violation.text);
    }
    ++seen.histories;
    seen.runs += outcome.counts.runs;
    seen.commands += outcome.counts.commands;
    seen.done += outcome.counts.done;
    seen.superseded += outcome.counts.superseded;
    seen.violations += outcome.violations.size();
    seen.simulated += std::chrono::duration<double>(outcome.lasted).count();
  }
  seen.real = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  MESSAGE(setting.name, ": ", seen.histories, " histories, ", seen.runs, " runs, ", seen.commands,
          " commands, ", seen.violations, " violations; ", seen.simulated / seen.real,
          " s simulated in a second");
  return seen;
}

// The next seed from there on in which the check fails; 0: none of so many.
uint64_t next_seed(const Mutant& mutant, uint64_t from, uint64_t most) {
  for (uint64_t seed = from; seed < from + most; ++seed) {
    const auto outcome = play(make_scenario(world_named(mutant.world), seed), mutant.broken);
    if (violation_of(outcome, mutant.noticed)) return seed;
  }
  return 0;
}

}  // namespace

TEST_CASE("a seed is one history, bit for bit") {
  for (const char* world : {"one_server", "modes", "quorum_of_3", "losses"}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Scenario scenario = make_scenario(world_named(world), seed);
      const Outcome first = play(scenario, {}, {false, true});
      const Outcome second = play(scenario, {}, {false, true});
      CHECK(first.digest == second.digest);
      CHECK(first.trace == second.trace);
      CHECK(first.digest != play(make_scenario(world_named(world), seed + 1)).digest);
    }
  }
}

TEST_CASE("within the bounds no commands overlap, tokens grow, and all are served in their order") {
  for (const char* world : {"one_server", "clock_back", "modes", "losses", "operators"}) {
    const Seen seen = live(world_named(world), 10 * times());
    CHECK(seen.commands > seen.histories * 20);
    CHECK(seen.violations == 0);
  }
  for (const char* world : {"quorum_of_3", "quorum_of_5", "quorum_storm"}) {
    const Seen seen = live(world_named(world), 2 * times());
    CHECK(seen.commands > seen.histories * 5);
    CHECK(seen.violations == 0);
  }
}

TEST_CASE("the longest leases leave room for clocks that differ") {
  CHECK(live(world_named("long_leases"), 3 * times()).violations == 0);
}

TEST_CASE("a grant that replicas have confirmed survives a fail-over to one of them") {
  Setting setting = world_named("confirmed");
  CHECK(live(setting, 20 * times()).violations == 0);
  setting.replicas = 0;
  bool found = false;
  for (uint64_t seed = 1; seed <= 60 && !found; ++seed) {
    found = violation_of(play(make_scenario(setting, seed)), Check::exclusion).has_value();
    if (found) MESSAGE("unconfirmed: the first overlap is in seed ", seed);
  }
  CHECK(found);
}

TEST_CASE("what is recorded as done is not done again, and only what somebody did is found done") {
  for (const char* world : {"once", "once_losses", "crontabs"}) {
    const Seen seen = live(world_named(world), 7 * times());
    CHECK(seen.done > seen.histories * 2);
    CHECK(seen.violations == 0);
  }
  CHECK(live(world_named("once_quorum"), times()).violations == 0);
}

TEST_CASE("an older one never runs after a newer one, which waits in the place of the older one") {
  const Seen seen = live(world_named("supersede"), 10 * times());
  CHECK(seen.superseded > seen.histories);
  CHECK(seen.violations == 0);
}

TEST_CASE("ten thousand waiters at a thousand hosts are served in their order") {
  const Seen seen = live(world_named("crowd"), times());
  CHECK(seen.commands > 9500);
  CHECK(seen.violations == 0);
}

TEST_CASE("where clocks differ by more than the bound two commands run at once") {
  Setting setting = world_named("drifting");
  bool found = false;
  for (uint64_t seed = 1; seed <= 60 && !found; ++seed) {
    found = violation_of(play(make_scenario(setting, seed)), Check::exclusion).has_value();
    if (found) MESSAGE("25 % drift: the first overlap is in seed ", seed);
  }
  CHECK(found);
  setting.drift_ppm = world_named("one_server").drift_ppm;
  CHECK(live(setting, 20 * times()).violations == 0);
}

TEST_CASE("every mutant is noticed") {
  for (const Mutant& mutant : mutants()) {
    CAPTURE(mutant.name);
    CHECK(ScriptSet(mutant.broken.scripts).all_applied());
    constexpr uint64_t kTimes = 2, kMost = 120;
    uint64_t last = 0, found = 0;
    while (found < kTimes) {
      const uint64_t seed = next_seed(mutant, last + 1, kMost);
      if (seed == 0) break;
      last = seed;
      ++found;
    }
    CHECK(found == kTimes);
    if (found > 0) {
      const std::string what = std::string(mutant.name) + " (" + mutant.world + ")";
      const std::string how = to_string(mutant.noticed);
      MESSAGE(what, ": \"", how, "\" once in ",
              static_cast<double>(last) / static_cast<double>(found), " seeds");
    }
  }
}

TEST_CASE("a history that goes wrong shrinks to a short one that goes wrong in the same way") {
  const Mutant& mutant = mutants().front();
  const uint64_t seed = next_seed(mutant, 1, 250);
  REQUIRE(seed > 0);
  const Scenario less =
      shrink(make_scenario(world_named(mutant.world), seed), mutant.broken, mutant.noticed);
  MESSAGE(replay_options(less));
  CHECK(less.kept_runs.size() == 2);
  CHECK(less.kept_faults.empty());
  const Outcome outcome = play(less, mutant.broken);
  CHECK(violation_of(outcome, mutant.noticed).has_value());
  CHECK(outcome.digest == play(less, mutant.broken).digest);
}

}  // namespace rlock::sim
