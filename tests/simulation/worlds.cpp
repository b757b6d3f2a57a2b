#include "simulation/worlds.hpp"

#include <algorithm>
#include <stdexcept>

namespace rlock::sim {
namespace {

// Within the bounds of what the manual promises.
const std::vector<FaultRate> kProcessFaults{
    {FaultKind::kill, 0.15},
    {FaultKind::stop, 0.15, 50ms, 40s},
    {FaultKind::interrupt, 0.05},
    {FaultKind::cut, 0.1, 100ms, 40s},
};
const std::vector<FaultRate> kServerFaults{
    {FaultKind::cut_server, 0.01, 100ms, 40s},
    {FaultKind::hang, 0.02, 10ms, 30s},
    {FaultKind::restart, 0.01, 50ms, 5s},
    {FaultKind::host_step, 0.02, 0s, 0s, 1h},
};

std::vector<FaultRate> both(std::vector<FaultRate> more = {}) {
  std::vector<FaultRate> all = kProcessFaults;
  all.insert(all.end(), kServerFaults.begin(), kServerFaults.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Rates storm() {
  Rates rates;
  rates.delay = 2ms;
  rates.late = 0.01;
  rates.lost = 0.01;
  rates.reset = 0.01;
  rates.doubled = 0.03;
  return rates;
}

Setting one_server() {
  Setting setting;
  setting.name = "one_server";
  setting.rates = storm();
  setting.faults = both();
  return setting;
}

// The counters survive: tokens grow although no clock does.
Setting clock_back() {
  Setting setting = one_server();
  setting.name = "clock_back";
  setting.faults = both({{FaultKind::server_step, 0.05, 0s, 0s, 1min}});
  setting.checks = {Check::exclusion, Check::tokens, Check::left};
  return setting;
}

Setting modes() {
  Setting setting = one_server();
  setting.name = "modes";
  setting.locks = 1;
  setting.modes = true;
  return setting;
}

// Members that forget do not count for a minute, and one at a time does.
Setting quorum(const char* name, size_t servers) {
  Setting setting = one_server();
  setting.name = name;
  setting.servers = servers;
  setting.faults = both({{FaultKind::forget, 0.01, 50ms, 5s}});
  setting.checks = {Check::exclusion, Check::tokens, Check::left};
  return setting;
}

// A bad network between few hosts and members that forget again and again.
Setting quorum_storm() {
  Setting setting = quorum("quorum_storm", 3);
  setting.hosts = 6;
  setting.locks = 1;
  setting.ttls = {Millis(3000), Millis(30'000)};
  setting.rates.delay = 20ms;
  setting.rates.lost = setting.rates.late = 0.04;
  setting.rates.doubled = 0.4;
  setting.faults = both({{FaultKind::forget, 0.15, 50ms, 5s}});
  return setting;
}

// What no lock survives: tokens grow all the same.
Setting losses() {
  Setting setting = one_server();
  setting.name = "losses";
  setting.faults = both({{FaultKind::forget, 0.02, 50ms, 5s},
                         {FaultKind::flush, 0.02},
                         {FaultKind::fail_over, 0.02, 50ms, 5s, 3s}});
  setting.checks = {Check::tokens, Check::left};
  return setting;
}

// Clocks that differ by much more than 1 %, where renewals fail while others wait.
Setting drifting() {
  Setting setting;
  setting.name = "drifting";
  setting.locks = 1;
  setting.hosts = 10;
  setting.ttls = {Millis(30'000)};
  setting.drift_ppm = 250'000;
  setting.endless = 1;
  setting.never = 0;
  setting.long_holds = 0.8;
  setting.faults = {{FaultKind::cut, 0.4, 10s, 60s}};
  return setting;
}

// Leases of which 1 % is longer than the kill comes early, cut off from the server.
Setting long_leases() {
  Setting setting = drifting();
  setting.name = "long_leases";
  setting.ttls = {Millis(3'600'000)};
  setting.runs = 12;
  setting.lasts = 2h;
  setting.drift_ppm = Setting{}.drift_ppm;
  setting.faults = {{FaultKind::cut, 2, 1h, 4h}};
  return setting;
}

// Work that is done once; those that come together do the same.
Setting once(const char* name, size_t servers) {
  Setting setting = one_server();
  setting.name = name;
  setting.servers = servers;
  setting.once = 0.9;
  setting.failing = 0.5;
  setting.endless = 0.8;
  setting.faults = both();
  if (servers > 1) setting.checks.erase(Check::order);
  if (servers > 1) setting.checks.erase(Check::prompt);
  return setting;
}

// Data are lost: then work may be done again, and nothing is found done that nobody did.
Setting once_losses() {
  Setting setting = once("once_losses", 1);
  setting.faults = losses().faults;
  setting.checks = {Check::tokens, Check::left, Check::done};
  return setting;
}

// Every host starts the same job in each minute of its own clock; these are up to 25 s apart.
Setting crontabs() {
  Setting setting = once("crontabs", 1);
  setting.once = 1;
  setting.locks = 1;
  setting.period = kOncePeriod;
  setting.by_own_clock = true;
  setting.skew = 25s;
  setting.runs = 100;
  setting.faults = kProcessFaults;
  return setting;
}

Setting supersede() {
  Setting setting = one_server();
  setting.name = "supersede";
  setting.superseding = 0.8;
  setting.failing = 0.2;
  setting.usual_hold = 4s;
  return setting;
}

// Operators break locks while all else goes on; those who do not wait for the holder let the next
// command begin beside its own.
Setting operators() {
  Setting setting = one_server();
  setting.name = "operators";
  setting.ttls = {Millis(30'000)};
  setting.usual_hold = 4s;
  setting.faults = both({{FaultKind::force, 0.2}, {FaultKind::force_now, 0.05}});
  for (FaultRate& rate : setting.faults) {
    if (rate.kind != FaultKind::force && rate.kind != FaultKind::force_now) rate.each /= 3;
  }
  return setting;
}

// What a lock cannot withstand, to see how often that does harm: each fault alone.
Setting only(const char* name, const FaultRate& fault) {
  Setting setting = one_server();
  setting.name = name;
  setting.locks = 1;
  setting.endless = 1;
  setting.never = 0;
  setting.long_holds = 0.5;
  setting.ttls = {Millis(10'000)};
  setting.faults = {fault};
  setting.checks = {Check::tokens, Check::left};
  return setting;
}

// Fail-overs to a replica that has confirmed each grant, whose clock is another one.
Setting confirmed() {
  Setting setting = only("confirmed", {FaultKind::fail_over, 0.3, 50ms, 5s, 3s});
  setting.replicas = 1;
  setting.clock_gap = 1s;
  setting.checks = {Check::exclusion, Check::tokens, Check::left};
  return setting;
}

Setting crowd() {
  Setting setting;
  setting.name = "crowd";
  setting.hosts = 1000;
  setting.locks = 1;
  setting.runs = 10'000;
  setting.lasts = 60s;
  setting.ttls = {Millis(30'000)};
  setting.usual_hold = 20ms;
  setting.long_holds = 0;
  setting.endless = 1;
  setting.never = 0;
  setting.faults = {{FaultKind::kill, 0.02}, {FaultKind::stop, 0.01, 50ms, 20s}};
  return setting;
}

// Each host runs a daily job, together with the nine others that share its lock. A day: `fleet cron
// --days N` makes it longer.
Setting cron() {
  Setting setting = one_server();
  setting.name = "cron";
  setting.hosts = 1000;
  setting.locks = 100;
  setting.period = 24h;
  setting.runs = 1'000;
  setting.lasts = 24h;
  setting.usual_hold = 2s;
  setting.long_holds = 0.05;
  setting.endless = 0.2;
  setting.never = 0.5;
  setting.ttls = {Millis(30'000), Millis(60'000)};
  setting.rates.lost = setting.rates.late = setting.rates.reset = 0.001;
  for (FaultRate& rate : setting.faults) rate.each /= 20;
  return setting;
}

}  // namespace

const std::vector<Setting>& worlds() {
  static const std::vector<Setting> all{
      one_server(),
      clock_back(),
      modes(),
      quorum("quorum_of_3", 3),
      quorum("quorum_of_5", 5),
      quorum_storm(),
      losses(),
      drifting(),
      long_leases(),
      once("once", 1),
      once("once_quorum", 3),
      once_losses(),
      crontabs(),
      supersede(),
      operators(),
      only("freezes", {FaultKind::freeze, 0.1, 1s, 60s}),
      only("fail_overs", {FaultKind::fail_over, 0.1, 50ms, 5s, 3s}),
      confirmed(),
      crowd(),
      cron()};
  return all;
}

const Setting& world_named(const std::string& name) {
  for (const Setting& setting : worlds()) {
    if (setting.name == name) return setting;
  }
  throw std::out_of_range("there is no world \"" + name + "\"");
}

}  // namespace rlock::sim
