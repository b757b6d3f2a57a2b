#include "simulation/scenario.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

namespace rlock::sim {
namespace {

lock::Limit limit_of(Chance& chance) {
  const std::array kinds{lock::Limit::shared(), lock::Limit::slots(2), lock::Limit::slots(3),
                         lock::Limit::exclusive()};
  return kinds.at(chance.below(kinds.size()));
}

// Those that come at about the same time do the same work.
void choose_work(Run& run, const Setting& setting, Chance& chance) {
  run.fails = chance.with(setting.failing);
  if (chance.with(setting.once)) {
    run.once = setting.by_own_clock ? OnceUse::period : OnceUse(1 + chance.below(3));
    run.key = static_cast<uint64_t>(run.at / kOnceWithin);
    if (chance.with(0.3)) run.max_failures = 2;
  }
  if (!chance.with(setting.superseding)) return;
  run.supersedes = true;
  // One lock's deploys have numbers, another's do not; one of five is a retry of an older one.
  const uint64_t newest = static_cast<uint64_t>(run.at / 1s);
  if (run.lock % 2 == 0)
    run.number = newest - std::min(newest, chance.with(0.2) ? chance.below(60) : 0);
}

// When that host's wall clock shows the next whole period.
Moment by_clock_of(const Setting& setting, uint64_t seed, size_t host, Moment at) {
  const HostClocks clocks = clocks_of_host(setting, seed, host);
  const Clock wall(kEpoch + clocks.skew, clocks.drift);
  const Nanos periods = wall.at(at) / setting.period * setting.period;
  return wall.when(periods + setting.period);
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
    run.at = setting.period * round;
    if (setting.by_own_clock) run.at = by_clock_of(setting, seed, run.host, run.at);
    run.at += chance.between(0s, 1s);
  }
  if (setting.modes) run.limit = limit_of(chance);
  run.ttl = setting.ttls[chance.below(setting.ttls.size())];
  run.replicas = setting.replicas;
  run.hold = chance.with(setting.long_holds) ? chance.between(0s, Nanos(3 * run.ttl))
                                             : chance.about(setting.usual_hold);
  run.patience = chance.between(1s, 60s);
  const double kind = chance.part();
  if (kind < setting.endless) run.patience = Nanos::max();
  if (kind >= 1 - setting.never) run.patience = 0s;
  run.dying = chance.with(0.7) ? chance.between(0s, 5ms) : chance.between(0s, 20s);
  choose_work(run, setting, chance);
  run.while_closed = chance.with(setting.while_closed);
  if (chance.with(setting.urgent)) run.urgent = Millis(5000 * (1 + chance.below(6)));
  if (chance.with(setting.min_hold)) run.min_hold = Millis(1000 * (1 + chance.below(20)));
  if (chance.with(setting.returning)) {
    run.patience = 100s;
    run.away = chance.between(100ms, 60s);
  }
  return run;
}

Fault make_fault(const Scenario& scenario, const FaultRate& rate, Chance& chance) {
  const Setting& setting = scenario.setting;
  Fault fault{rate.kind, chance.between(0s, setting.lasts)};
  fault.lasts = chance.between(rate.shortest, rate.longest);
  fault.amount = chance.between(-rate.amount, rate.amount);
  // Where a server's clock is set back its leases only end later.
  if (rate.kind == FaultKind::server_step) fault.amount = -std::chrono::abs(fault.amount);
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
    case FaultKind::freeze:
      fault.which = chance.below(setting.hosts);
      break;
    case FaultKind::force:
    case FaultKind::force_now:
    case FaultKind::close:
    case FaultKind::open:
    case FaultKind::forget_work:
      fault.which = chance.below(setting.locks);
      break;
    default:
      fault.which = chance.below(setting.servers);
  }
  fault.server = chance.below(setting.servers);
  if (rate.kind != FaultKind::fail_over && rate.kind != FaultKind::planned) return fault;
  fault.amount = chance.between(0s, rate.amount);
  if (setting.clock_gap > 0s) fault.gap = chance.between(-setting.clock_gap, setting.clock_gap);
  return fault;
}

}  // namespace

const char* to_string(FaultKind kind) {
  constexpr std::array kNames{"kill",      "stop",        "interrupt", "cut",        "cut_server",
                              "hang",      "restart",     "forget",    "flush",      "fail_over",
                              "planned",   "server_step", "host_step", "freeze",     "force",
                              "force_now", "close",       "open",      "forget_work"};
  return kNames.at(static_cast<size_t>(kind));
}

int64_t random_drift(Chance& chance, const Setting& setting) {
  const int64_t most = setting.drift_ppm;
  return static_cast<int64_t>(chance.below(static_cast<uint64_t>(2 * most + 1))) - most;
}

HostClocks clocks_of_host(const Setting& setting, uint64_t seed, size_t host) {
  Chance chance(seed, 5, host);
  const int64_t drift = random_drift(chance, setting);
  const Nanos since_boot = chance.between(1min, 1000h);
  return {drift, since_boot, chance.between(-setting.skew, setting.skew)};
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

std::string to_string(OnceUse once) {
  constexpr std::array kNames{"", "key ", "per ", "within"};
  return kNames.at(static_cast<size_t>(once));
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
  if (run.away > 0s) text += ", returns after " + in_seconds(run.away);
  if (run.once == OnceUse::key) text += ", once " + std::to_string(run.key);
  if (run.once == OnceUse::period) text += ", once per minute";
  if (run.once == OnceUse::within) text += ", once within " + in_seconds(kOnceWithin);
  if (run.max_failures) text += ", at most " + std::to_string(*run.max_failures) + " failures";
  if (run.supersedes) text += ", supersedes";
  if (run.number) text += " with " + std::to_string(*run.number);
  if (run.fails) text += ", fails";
  if (run.while_closed) text += ", also while it is closed";
  if (run.urgent > 0s) text += ", urgent by " + in_seconds(run.urgent);
  if (run.min_hold > 0s) text += ", holds it for at least " + in_seconds(run.min_hold);
  return text;
}

}  // namespace rlock::sim
