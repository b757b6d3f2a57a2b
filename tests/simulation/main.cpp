#include <cstdio>
#include <cstdlib>

#include "simulation/fleet.hpp"
#include "simulation/worlds.hpp"

int main(int argc, char** argv) {
  using namespace rlock::sim;
  Setting setting = world_named(argv[1]);
  uint64_t from = strtoull(argv[2], nullptr, 10);
  uint64_t to = argc > 3 ? strtoull(argv[3], nullptr, 10) : from;
  for (uint64_t seed = from; seed <= to; ++seed) {
    auto scenario = make_scenario(setting, seed);
    auto outcome = play(scenario, {}, {false, from == to});
    for (auto& line : outcome.trace) std::printf("%s\n", line.c_str());
    std::printf("seed %lu: %lu runs %lu commands %lu scripts %lu queued, %lu faults, %lu violations, gap %s, lasted %s, digest %lx\n", seed, outcome.counts.runs, outcome.counts.commands, outcome.counts.scripts, outcome.counts.queued, outcome.counts.faults, outcome.violations.size(), in_seconds(outcome.counts.longest_gap).c_str(), in_seconds(outcome.lasted).c_str(), outcome.digest);
    for (auto& v : outcome.violations) std::printf("  %s at %s %s\n", to_string(v.check), in_seconds(v.at).c_str(), v.text.c_str());
  }
}
