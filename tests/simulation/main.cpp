// The program: simulates worlds, repeats a history, and makes a failing one short.
#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "simulation/mutants.hpp"
#include "simulation/shrink.hpp"
#include "simulation/worlds.hpp"

namespace rlock::sim {
namespace {

constexpr const char* kUsage =
    "usage: fleet WORLD [--seed N | --seeds FROM-TO] [--days N] [--drift PPM] [--replicas N]\n"
    "             [--mutant NAME] [--runs N,N… | none] [--faults N,N… | none] [--without WHAT]…\n"
    "             [--trace] [--shrink]\n";

struct Options {
  Setting setting;
  uint64_t first = 1, last = 1;
  std::optional<std::vector<size_t>> runs{}, faults{};
  Broken broken{};
  bool trace = false;
  bool shrinks = false;
};

uint64_t number_of(const std::string& text) {
  uint64_t number = 0;
  const auto end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number).ptr != end || text.empty()) {
    throw std::out_of_range("not a number: " + text);
  }
  return number;
}

std::vector<size_t> numbers_of(std::string text) {
  std::vector<size_t> numbers;
  if (text == "none") return numbers;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    numbers.push_back(number_of(text.substr(0, comma)));
    text.erase(0, comma + 1);
  }
  return numbers;
}

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

void read_option(Options& options, const std::string& name, const std::string& value) {
  if (name == "--seed") {
    options.first = options.last = number_of(value);
  } else if (name == "--seeds") {
    const size_t dash = value.find('-');
    options.first = number_of(value.substr(0, dash));
    options.last = number_of(value.substr(dash + 1));
  } else if (name == "--days") {
    set_days(options.setting, number_of(value));
  } else if (name == "--drift") {
    options.setting.drift_ppm = static_cast<int64_t>(number_of(value));
  } else if (name == "--replicas") {
    options.setting.replicas = number_of(value);
  } else if (name == "--mutant") {
    options.broken = mutant_named(value);
  } else if (name == "--runs") {
    options.runs = numbers_of(value);
  } else if (name == "--faults") {
    options.faults = numbers_of(value);
  } else if (name == "--without") {
    leave_out(options.setting, value);
  } else {
    throw std::out_of_range("there is no option " + name);
  }
}

Options read(int argc, char** argv) {
  if (argc < 2) throw std::out_of_range("a world is missing");
  Options options{world_named(argv[1])};
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--trace") {
      options.trace = true;
    } else if (name == "--shrink") {
      options.shrinks = true;
    } else if (i + 1 < argc) {
      read_option(options, name, argv[++i]);
    } else {
      throw std::out_of_range(name + " needs a value");
    }
  }
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
      options.setting.name.c_str(), options.first, options.last, sums.counts.runs,
      sums.counts.queued, sums.counts.commands, sums.counts.scripts, sums.counts.faults,
      sums.counts.kills);
  std::printf(
      "%lu successes, %lu found done, %lu failed too often, %lu superseded, %lu broken by an "
      "operator; %lu commands began beside another\n",
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
  for (uint64_t seed = options.first; seed <= options.last; ++seed) {
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
  try {
    return rlock::sim::simulate(rlock::sim::read(argc, argv));
  } catch (const std::out_of_range& error) {
    std::fprintf(stderr, "fleet: %s\n%s", error.what(), rlock::sim::kUsage);
    return 64;
  }
}
