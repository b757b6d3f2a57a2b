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

Sums live(const Setting& setting, uint64_t seeds) {
  Sums sums;
  const auto began = std::chrono::steady_clock::now();
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Outcome outcome = play(make_scenario(setting, seed));
    for (const Violation& violation : outcome.violations) {
      const std::string how = to_string(violation.check);
      MESSAGE(setting.name, ", seed ", seed, ": ", how, ": ", violation.text);
    }
    sums.add(outcome);
  }
  const std::chrono::duration<double> real = std::chrono::steady_clock::now() - began;
  MESSAGE(setting.name, ": ", sums.histories, " histories, ", sums.counts.runs, " runs, ",
          sums.counts.commands, " commands, ", sums.violations, " violations; ",
          sums.simulated / real.count(), " s simulated in a second");
  return sums;
}

// The next seed from there on in which the check fails; 0: none of so many.
uint64_t next_seed(const Setting& setting, Check check, const Broken& broken = {},
                   uint64_t from = 1, uint64_t most = 60) {
  for (uint64_t seed = from; seed < from + most; ++seed) {
    if (violation_of(play(make_scenario(setting, seed), broken), check)) return seed;
  }
  return 0;
}

// That no commands run at once is not for want of trying.
void check_overlaps(const Setting& setting, const char* where) {
  const uint64_t seed = next_seed(setting, Check::exclusion);
  CHECK(seed > 0);
  MESSAGE(std::string(where), ": the first overlap is in seed ", seed);
}

}  // namespace

TEST_CASE("a seed always gives the same history") {
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
  for (const char* world :
       {"one_server", "clock_back", "modes", "losses", "operators", "closures", "places"}) {
    const Sums seen = live(world_named(world), 10 * times());
    CHECK(seen.counts.commands > seen.histories * 20);
    CHECK(seen.violations == 0);
  }
  for (const char* world : {"quorum_of_3", "quorum_of_5", "quorum_storm"}) {
    const Sums seen = live(world_named(world), 2 * times());
    CHECK(seen.counts.commands > seen.histories * 5);
    CHECK(seen.violations == 0);
  }
}

TEST_CASE("callers who return are granted the lock in the order of their first asking") {
  const Sums seen = live(world_named("returning"), times());
  CHECK(seen.counts.returned > seen.histories * 100);
  CHECK(seen.violations == 0);
}

TEST_CASE("the longest leases leave room for clocks that differ") {
  CHECK(live(world_named("long_leases"), 3 * times()).violations == 0);
}

TEST_CASE("a grant that replicas have confirmed survives a failover to one of them") {
  Setting setting = world_named("confirmed");
  CHECK(live(setting, 20 * times()).violations == 0);
  setting.replicas = 0;
  check_overlaps(setting, "unconfirmed");
}

TEST_CASE("recorded work is not done again, and only finished work is found done") {
  for (const char* world : {"once", "once_losses", "crontabs"}) {
    const Sums seen = live(world_named(world), 7 * times());
    CHECK(seen.counts.done > seen.histories * 2);
    if (world_named(world).name == "once") CHECK(seen.counts.forgotten > 0);
    CHECK(seen.violations == 0);
  }
  CHECK(live(world_named("once_quorum"), times()).violations == 0);
}

TEST_CASE("an older run never runs after a newer one, which takes its position") {
  const Sums seen = live(world_named("supersede"), 10 * times());
  CHECK(seen.counts.superseded > seen.histories);
  CHECK(seen.violations == 0);
}

TEST_CASE("two versions of rlock at the same servers keep all rules together") {
  for (const char* world : {"one_server", "modes", "losses", "operators", "closures", "places",
                            "once", "supersede", "quorum_of_3"}) {
    Setting setting = world_named(world);
    setting.versions = 2;
    CHECK(live(setting, 3 * times()).violations == 0);
  }
  // What one of them does wrong is noticed.
  Setting setting = world_named("once");
  setting.versions = 2;
  CHECK(next_seed(setting, Check::repeated,
                  {ClientRule::none, {{"if is_done(work, mark) then", "if false then"}}}) > 0);
}

TEST_CASE("ten thousand waiters at a thousand hosts are served in their order") {
  const Sums seen = live(world_named("crowd"), times());
  CHECK(seen.counts.commands > 9500);
  CHECK(seen.violations == 0);
}

TEST_CASE("if clocks differ by more than the bound, two commands run at the same time") {
  Setting setting = world_named("drifting");
  check_overlaps(setting, "25 % drift");
  setting.drift_ppm = world_named("one_server").drift_ppm;
  CHECK(live(setting, 20 * times()).violations == 0);
}

TEST_CASE("every mutant is noticed") {
  for (const Mutant& mutant : mutants()) {
    CAPTURE(mutant.name);
    CHECK(test::ScriptSet(mutant.broken.scripts).all_applied());
    constexpr uint64_t kTimes = 2, kMost = 120;
    const Setting world = world_named(mutant.world);
    uint64_t last = 0, found = 0;
    while (found < kTimes) {
      const uint64_t seed = next_seed(world, mutant.noticed, mutant.broken, last + 1, kMost);
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

TEST_CASE("a failing history shrinks to a short one that fails in the same way") {
  const Mutant& mutant = mutants().front();
  const Setting world = world_named(mutant.world);
  const uint64_t seed = next_seed(world, mutant.noticed, mutant.broken, 1, 250);
  REQUIRE(seed > 0);
  const Scenario less = shrink(make_scenario(world, seed), mutant.broken, mutant.noticed);
  MESSAGE(replay_options(less));
  CHECK(less.kept_runs.size() == 2);
  CHECK(less.kept_faults.empty());
  const Outcome outcome = play(less, mutant.broken);
  CHECK(violation_of(outcome, mutant.noticed).has_value());
  CHECK(outcome.digest == play(less, mutant.broken).digest);
}

}  // namespace rlock::sim
