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

const Setting kOneServer{.name = "one_server", .rates = storm(), .faults = both()};

// As another world, but for the name and what `change` does.
Setting world(const char* name, Setting setting, void (*change)(Setting&) = {}) {
  setting.name = name;
  if (change != nullptr) change(setting);
  return setting;
}

// Members that forget do not count for a minute, and one at a time does.
Setting quorum(const char* name, size_t servers) {
  Setting setting = world(name, kOneServer);
  setting.servers = servers;
  setting.faults = both({{FaultKind::forget, 0.01, 50ms, 5s}});
  setting.checks = {Check::exclusion, Check::tokens, Check::left};
  return setting;
}

// Clocks that differ by much more than 1 %, where renewals fail while others wait.
Setting drifting() {
  return {.name = "drifting",
          .hosts = 10,
          .locks = 1,
          .ttls = {Millis(30'000)},
          .long_holds = 0.8,
          .endless = 1,
          .never = 0,
          .drift_ppm = 250'000,
          .faults = {{FaultKind::cut, 0.4, 10s, 60s}}};
}

// Work that is done once; those that come together do the same.
Setting once(const char* name, size_t servers) {
  Setting setting = world(name, kOneServer);
  setting.servers = servers;
  setting.once = 0.9;
  setting.failing = 0.5;
  setting.endless = 0.8;
  setting.faults.push_back({FaultKind::forget_work, 0.05});
  if (servers > 1) setting.checks.erase(Check::order);
  if (servers > 1) setting.checks.erase(Check::prompt);
  return setting;
}

// What no lock survives: tokens grow all the same.
std::vector<FaultRate> losses() {
  return both({{FaultKind::forget, 0.02, 50ms, 5s},
               {FaultKind::flush, 0.02},
               {FaultKind::fail_over, 0.02, 50ms, 5s, 3s}});
}

// What a lock cannot withstand, to see how often that does harm: each fault alone.
Setting only(const char* name, const FaultRate& fault) {
  Setting setting = world(name, kOneServer);
  setting.locks = 1;
  setting.endless = 1;
  setting.never = 0;
  setting.long_holds = 0.5;
  setting.ttls = {Millis(10'000)};
  setting.faults = {fault};
  setting.checks = {Check::tokens, Check::left};
  return setting;
}

}  // namespace

const std::vector<Setting>& worlds() {
  static const std::vector<Setting> all{
      kOneServer,
      // The counters survive: tokens grow although no clock does.
      world("clock_back", kOneServer,
            [](Setting& setting) {
              setting.faults = both({{FaultKind::server_step, 0.05, 0s, 0s, 1min}});
              setting.checks = {Check::exclusion, Check::tokens, Check::left};
            }),
      world("modes", kOneServer,
            [](Setting& setting) {
              setting.locks = 1;
              setting.modes = true;
            }),
      quorum("quorum_of_3", 3),
      quorum("quorum_of_5", 5),
      // A bad network between few hosts and members that forget again and again.
      world("quorum_storm", quorum("", 3),
            [](Setting& setting) {
              setting.hosts = 6;
              setting.locks = 1;
              setting.ttls = {Millis(3000), Millis(30'000)};
              setting.rates.delay = 20ms;
              setting.rates.lost = setting.rates.late = 0.04;
              setting.rates.doubled = 0.4;
              setting.faults = both({{FaultKind::forget, 0.15, 50ms, 5s}});
            }),
      world("losses", kOneServer,
            [](Setting& setting) {
              setting.faults = losses();
              setting.checks = {Check::tokens, Check::left};
            }),
      drifting(),
      // Leases of which 1 % is longer than the kill comes early, cut off from the server.
      world("long_leases", drifting(),
            [](Setting& setting) {
              setting.ttls = {Millis(3'600'000)};
              setting.runs = 12;
              setting.lasts = 2h;
              setting.drift_ppm = Setting{}.drift_ppm;
              setting.faults = {{FaultKind::cut, 2, 1h, 4h}};
            }),
      once("once", 1),
      once("once_quorum", 3),
      // Data are lost: then work may be done again, and nothing is found done that nobody did.
      world("once_losses", once("", 1),
            [](Setting& setting) {
              setting.faults = losses();
              setting.checks = {Check::tokens, Check::left, Check::done};
            }),
      // Every host starts the same job in each minute of its own clock; these are up to 25 s apart.
      world("crontabs", once("", 1),
            [](Setting& setting) {
              setting.once = 1;
              setting.locks = 1;
              setting.period = kOncePeriod;
              setting.by_own_clock = true;
              setting.skew = 25s;
              setting.runs = 100;
              setting.faults = kProcessFaults;
            }),
      world("supersede", kOneServer,
            [](Setting& setting) {
              setting.superseding = 0.8;
              setting.failing = 0.2;
              setting.usual_hold = 4s;
            }),
      // Operators break, close and open locks while all else goes on; those who do not wait for the
      // holder let the next command begin beside its own.
      world("operators", kOneServer,
            [](Setting& setting) {
              setting.ttls = {Millis(30'000)};
              setting.usual_hold = 4s;
              for (FaultRate& rate : setting.faults) rate.each /= 3;
              setting.faults.push_back({FaultKind::force, 0.2});
              setting.faults.push_back({FaultKind::force_now, 0.05});
              setting.faults.push_back({FaultKind::close, 0.15, 5s, 60s});
              setting.faults.push_back({FaultKind::open, 0.08});
              setting.while_closed = 0.2;
            }),
      // The servers are well, so that who waits is served as soon as it may be.
      world("closures", kOneServer,
            [](Setting& setting) {
              setting.locks = 1;
              setting.usual_hold = 4s;
              setting.long_holds = 0.05;
              setting.while_closed = 0.2;
              setting.faults = {{FaultKind::kill, 0.05},
                                {FaultKind::interrupt, 0.05},
                                {FaultKind::close, 0.12, 5s, 60s},
                                {FaultKind::open, 0.1}};
            }),
      // Urgent ones, and those that leave the lock taken.
      world("places", kOneServer,
            [](Setting& setting) {
              setting.usual_hold = 4s;
              setting.urgent = 0.3;
              setting.min_hold = 0.2;
              for (FaultRate& rate : setting.faults) rate.each /= 3;
            }),
      // A thousand callers with a time limit, who return with their tickets.
      {.name = "returning",
       .hosts = 100,
       .locks = 1,
       .runs = 1000,
       .lasts = 300s,
       .ttls = {Millis(30'000)},
       .usual_hold = 500ms,
       .long_holds = 0,
       .endless = 0.3,
       .never = 0,
       .returning = 0.8,
       .faults = {{FaultKind::kill, 0.02}, {FaultKind::stop, 0.02, 50ms, 20s}}},
      only("freezes", {FaultKind::freeze, 0.1, 1s, 60s}),
      only("fail_overs", {FaultKind::fail_over, 0.1, 50ms, 5s, 3s}),
      // Fail-overs to a replica that has confirmed each grant, whose clock is another one; and
      // planned ones, which clients follow up to 1.5 s after the promotion.
      world("confirmed", only("", {FaultKind::fail_over, 0.3, 50ms, 5s, 3s}),
            [](Setting& setting) {
              setting.replicas = 2;
              setting.sentinels = true;
              setting.faults.push_back({FaultKind::planned, 0.3, 20ms, 500ms, 1500ms});
              // Two failovers may fall into one lease, and --replicas allows a second in all.
              setting.clock_gap = 500ms;
              setting.checks = {Check::exclusion, Check::tokens, Check::left};
            }),
      {.name = "crowd",
       .hosts = 1000,
       .locks = 1,
       .runs = 10'000,
       .lasts = 60s,
       .ttls = {Millis(30'000)},
       .usual_hold = 20ms,
       .long_holds = 0,
       .endless = 1,
       .never = 0,
       .faults = {{FaultKind::kill, 0.02}, {FaultKind::stop, 0.01, 50ms, 20s}}},
      // Each host runs a daily job, together with the nine others that share its lock. A day:
      // `fleet cron --days N` makes it longer.
      world("cron", kOneServer, [](Setting& setting) {
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
        setting.faults.push_back({FaultKind::close, 0.005, 5s, 60s});
        setting.faults.push_back({FaultKind::open, 0.005});
        setting.faults.push_back({FaultKind::force, 0.005});
        setting.faults.push_back({FaultKind::forget_work, 0.005});
        setting.once = setting.while_closed = setting.urgent = setting.min_hold = 0.1;
      })};
  return all;
}

const Setting& world_named(const std::string& name) {
  for (const Setting& setting : worlds()) {
    if (setting.name == name) return setting;
  }
  throw std::out_of_range("there is no world \"" + name + "\"");
}

}  // namespace rlock::sim
