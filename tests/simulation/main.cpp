// The program: simulates worlds, repeats a history, and makes a failing one short.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>

#include "simulation/mutants.hpp"
#include "simulation/shrink.hpp"
#include "simulation/worlds.hpp"

namespace rlock::sim {
namespace {

struct Options {
  Setting setting;
  std::pair<uint64_t, uint64_t> seeds{1, 1};
  std::optional<std::vector<size_t>> runs{}, faults{};
  Broken broken{};
  bool trace = false;
  bool shrinks = false;
};

Broken mutant_named(const std::string& name) {
  for (const Mutant& mutant : mutants()) {
    if (mutant.name == name) return mutant.broken;
  }
  throw std::out_of_range("there is no mutant \"" + name + "\"");
}

void set_days(Setting& setting, uint64_t days) {
  const auto times =
      static_cast<double>(days) * 24 * 3600e9 / static_cast<double>(setting.lasts.count());
  setting.runs = static_cast<size_t>(static_cast<double>(setting.runs) * times);
  setting.lasts = static_cast<Nanos::rep>(days) * Nanos(24h);
}

std::function<void(const std::vector<std::string>&)> reads(
    std::optional<std::vector<size_t>>& numbers) {
  return [&numbers](const std::vector<std::string>& words) {
    numbers.emplace();
    if (words == std::vector<std::string>{"none"}) return;
    for (const std::string& word : words) {
      if (!CLI::detail::lexical_cast(word, numbers->emplace_back())) {
        throw CLI::ConversionError(word, "numbers");
      }
    }
  };
}

Options read(CLI::App& app, int argc, char** argv) {
  using Words = std::vector<std::string>;
  Options options;
  Setting& setting = options.setting;
  // CLI11 takes them in this order: the options change the world.
  app.add_option_function<std::string>(
         "WORLD", [&](const std::string& name) { setting = world_named(name); })
      ->required();
  app.add_option_function<uint64_t>("--seed", [&](uint64_t seed) { options.seeds = {seed, seed}; });
  app.add_option("--seeds", options.seeds, "FROM-TO")->delimiter('-');
  app.add_option_function<uint64_t>("--days", [&](uint64_t days) { set_days(setting, days); });
  app.add_option("--drift", setting.drift_ppm, "parts per million");
  app.add_option("--replicas", setting.replicas);
  app.add_option("--versions", setting.versions)->check(CLI::Range(1, 2));
  app.add_option_function<std::string>(
      "--mutant", [&](const std::string& name) { options.broken = mutant_named(name); });
  app.add_option_function<Words>("--runs", reads(options.runs), "N,N… or none")->delimiter(',');
  app.add_option_function<Words>("--faults", reads(options.faults), "likewise")->delimiter(',');
  app.add_option_function<Words>("--without", [&](const Words& words) {
    for (const std::string& word : words) leave_out(setting, word);
  });
  app.add_flag("--trace", options.trace);
  app.add_flag("--shrink", options.shrinks);
  app.parse(argc, argv);
  return options;
}

void print_parts(const Scenario& scenario) {
  for (size_t run : scenario.kept_runs) {
    std::printf("  run %zu: %s\n", run, describe(scenario.runs[run]).c_str());
  }
  for (size_t fault : scenario.kept_faults) {
    std::printf("  fault %zu: %s\n", fault, describe(scenario.faults[fault]).c_str());
  }
}

void show_violations(const Options& options, const Scenario& scenario, const Outcome& outcome) {
  std::printf("seed %lu:\n", scenario.seed);
  for (const Violation& violation : outcome.violations) {
    std::printf("  %s  %s: %s\n", in_seconds(violation.at).c_str(), to_string(violation.check),
                violation.text.c_str());
  }
  if (!options.shrinks) return;
  const auto less = shrink(scenario, options.broken, outcome.violations.front().check);
  std::printf("short: fleet %s --trace\n", replay_options(less).c_str());
  print_parts(less);
  for (const std::string& line : play(less, options.broken, {false, true}).trace) {
    std::printf("    %s\n", line.c_str());
  }
}

void show(const Options& options, const Sums& sums, double real) {
  const double years = sums.simulated * static_cast<double>(options.setting.hosts) / 31'557'600;
  std::printf(
      "%s, seeds %lu to %lu: %lu runs, of which %lu waited; %lu commands; %lu scripts; %lu faults, "
      "%lu of them a kill\n",
      options.setting.name.c_str(), options.seeds.first, options.seeds.second, sums.counts.runs,
      sums.counts.queued, sums.counts.commands, sums.counts.scripts, sums.counts.faults,
      sums.counts.kills);
  std::printf(
      "%lu successes, %lu found done, %lu failed too often, %lu superseded, %lu broken by an "
      "operator; %lu commands overlapped\n",
      sums.counts.successes, sums.counts.done, sums.counts.failed_too_often, sums.counts.superseded,
      sums.counts.broken, sums.counts.overlaps);
  std::printf(
      "%.0f s simulated (%.2f host-years) in %.1f s: %.0f s for a second, %.1f host-years an "
      "hour\n",
      sums.simulated, years, real, sums.simulated / real, years / real * 3600);
  std::printf("longest time from a free lock to the next command without a fault: %s\n",
              in_seconds(sums.counts.longest_gap).c_str());
  std::printf("%lu violations, in %lu of %lu histories\n", sums.violations, sums.worlds_violated,
              sums.histories);
}

int simulate(const Options& options) {
  Sums sums;
  const auto began = std::chrono::steady_clock::now();
  for (uint64_t seed = options.seeds.first; seed <= options.seeds.second; ++seed) {
    Scenario scenario = make_scenario(options.setting, seed);
    if (options.runs) scenario.kept_runs = *options.runs;
    if (options.faults) scenario.kept_faults = *options.faults;
    if (options.trace) print_parts(scenario);
    const Outcome outcome = play(scenario, options.broken, {false, options.trace});
    for (const std::string& line : outcome.trace) std::printf("%s\n", line.c_str());
    if (!outcome.violations.empty()) show_violations(options, scenario, outcome);
    std::fflush(stdout);
    sums.add(outcome);
  }
  const std::chrono::duration<double> real = std::chrono::steady_clock::now() - began;
  show(options, sums, real.count());
  return sums.violations == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rlock::sim

int main(int argc, char** argv) {
  // A renewal thread has two descriptors.
  const rlimit most{65536, 65536};
  setrlimit(RLIMIT_NOFILE, &most);
  CLI::App app("Simulates worlds, repeats a history, and makes a failing one short.");
  try {
    return rlock::sim::simulate(rlock::sim::read(app, argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 64;
  } catch (const std::out_of_range& error) {
    std::fprintf(stderr, "fleet: %s\n", error.what());
    return 64;
  }
}
