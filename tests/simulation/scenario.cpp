#include "simulation/scenario.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

namespace rlock::sim {
namespace {

lock::Limit limit_of(Chance& chance) {
  switch (chance.below(4)) {
    case 0:
      return lock::Limit::shared();
    case 1:
      return lock::Limit::slots(2);
    case 2:
      return lock::Limit::slots(3);
    default:
      return lock::Limit::exclusive();
  }
}

Run make_run(const Setting& setting, uint64_t seed, size_t number) {
  Chance chance(seed, 3, number);
  Run run;
  run.at = chance.between(0s, setting.lasts);
  run.host = chance.below(setting.hosts);
  run.lock = chance.below(setting.locks);
  if (setting.period > 0s) {
    // The hosts of one lock come together: each a moment late, as cron is.
    run.host = number % setting.hosts;
    run.lock = run.host % setting.locks;
    const auto round = static_cast<Nanos::rep>(number / setting.hosts);
    run.at = setting.period * round + chance.between(0s, 1s);
  }
  if (setting.modes) run.limit = limit_of(chance);
  run.ttl = setting.ttls[chance.below(setting.ttls.size())];
  run.hold = chance.with(setting.long_holds) ? chance.between(0s, Nanos(3 * run.ttl))
                                             : chance.about(setting.usual_hold);
  run.patience = chance.between(1s, 60s);
  const double kind = chance.part();
  if (kind < setting.endless) run.patience = Nanos::max();
  if (kind >= 1 - setting.never) run.patience = 0s;
  run.dying = chance.with(0.7) ? chance.between(0s, 5ms) : chance.between(0s, 20s);
  return run;
}

Fault make_fault(const Scenario& scenario, const FaultRate& rate, Chance& chance) {
  const Setting& setting = scenario.setting;
  Fault fault{rate.kind, chance.between(0s, setting.lasts)};
  fault.lasts = chance.between(rate.shortest, rate.longest);
  fault.amount = chance.between(-rate.amount, rate.amount);
  if (rate.kind == FaultKind::server_step && setting.server_steps == Steps::back) {
    fault.amount = -std::chrono::abs(fault.amount);
  }
  switch (rate.kind) {
    case FaultKind::kill:
    case FaultKind::stop:
    case FaultKind::interrupt:
      // Most of what a process lives through comes soon after it came.
      fault.which = chance.below(scenario.runs.size());
      fault.at = scenario.runs[fault.which].at + chance.between(0s, chance.with(0.5) ? 2s : 60s);
      break;
    case FaultKind::cut:
    case FaultKind::host_step:
      fault.which = chance.below(setting.hosts);
      break;
    default:
      fault.which = chance.below(setting.servers);
  }
  fault.server = chance.below(setting.servers);
  if (rate.kind == FaultKind::fail_over) fault.amount = chance.between(0s, rate.amount);
  return fault;
}

}  // namespace

const char* to_string(FaultKind kind) {
  constexpr std::array kNames{"kill",       "stop",      "interrupt",   "cut",
                              "cut_server", "hang",      "restart",     "forget",
                              "flush",      "fail_over", "server_step", "host_step"};
  return kNames.at(static_cast<size_t>(kind));
}

Scenario make_scenario(const Setting& setting, uint64_t seed) {
  Scenario scenario{setting, seed, {}, {}, {}, {}};
  for (size_t i = 0; i < setting.runs; ++i) {
    scenario.runs.push_back(make_run(setting, seed, i));
  }
  Chance chance(seed, 4);
  for (const FaultRate& rate : setting.faults) {
    const double expected = rate.each * static_cast<double>(setting.runs);
    auto times = static_cast<size_t>(expected);
    times += chance.with(expected - static_cast<double>(times)) ? 1 : 0;
    for (size_t i = 0; i < times; ++i) {
      scenario.faults.push_back(make_fault(scenario, rate, chance));
    }
  }
  scenario.kept_runs.resize(scenario.runs.size());
  std::iota(scenario.kept_runs.begin(), scenario.kept_runs.end(), 0);
  scenario.kept_faults.resize(scenario.faults.size());
  std::iota(scenario.kept_faults.begin(), scenario.kept_faults.end(), 0);
  return scenario;
}

std::string in_seconds(Nanos time) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f s", static_cast<double>(time.count()) / 1e9);
  return text;
}

std::string describe(const Fault& fault) {
  std::string text =
      in_seconds(fault.at) + " " + to_string(fault.kind) + " " + std::to_string(fault.which);
  if (fault.kind == FaultKind::cut) text += " from server " + std::to_string(fault.server);
  if (fault.lasts > 0s) text += " for " + in_seconds(fault.lasts);
  if (fault.amount != 0s) text += " by " + in_seconds(fault.amount);
  return text;
}

std::string describe(const Run& run) {
  std::string text = in_seconds(run.at) + " comes to host " + std::to_string(run.host) + ", lock " +
                     std::to_string(run.lock) + ", ttl " + in_seconds(run.ttl) + ", command " +
                     in_seconds(run.hold);
  if (run.limit != lock::Limit::exclusive()) {
    text += ", limit " + std::to_string(run.limit.value());
  }
  if (run.patience != Nanos::max()) text += ", waits " + in_seconds(run.patience);
  return text;
}

}  // namespace rlock::sim
