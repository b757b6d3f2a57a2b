#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lock/types.hpp"
#include "simulation/network.hpp"

// What happens in one history from outside: who comes when, and what fails. All of it follows from
// a seed; parts may be left out, and the rest stays the same.
namespace rlock::sim {

enum class Check {
  exclusion,
  tokens,
  order,
  prompt,
  left,
  repeated,  // of what is done once: done again, or not recorded
  done,      // found done, or failed too often, without a reason
  newest,    // of those that supersede others
  broken,    // by an operator
  closed,    // by an operator, too
  min_hold,
};

enum class FaultKind {
  kill,         // a process of rlock
  stop,         // and continued
  interrupt,    // TERM
  cut,          // a host from a server
  cut_server,   // from all hosts
  hang,         // a server
  restart,      // a server, with its data
  forget,       // a server restarts without its data
  flush,        // a server loses its data
  fail_over,    // to a replica that is behind by `amount`
  planned,      // fail-over, to a replica that was promoted `amount` before clients follow
  server_step,  // of its clock, by `amount`
  host_step,    // of a host's wall clock
  freeze,       // a host, with the commands that it runs
  force,        // an operator breaks a lock, and waits until its holder confirms
  force_now,    // and does not wait
  close,        // an operator closes a lock, for `lasts`
  open,         // and opens it
  forget_work,  // an operator has what was done forgotten
};
const char* to_string(FaultKind kind);

struct Fault {
  FaultKind kind;
  Moment at;
  Nanos lasts{0};
  Nanos amount{0};
  Nanos gap{0};       // of a fail-over: by how much the clock of the new master is ahead
  size_t which = 0;   // the run; else the host, the server or the lock
  size_t server = 0;  // of a cut
};

// --once KEY, --once-per minute, --once-within.
enum class OnceUse { none, key, period, within };
std::string to_string(OnceUse once);

// One `rlock run`.
struct Run {
  Moment at;
  size_t host = 0;
  size_t lock = 0;
  lock::Limit limit = lock::Limit::exclusive();
  Millis ttl{10'000};
  Nanos hold{0};
  Nanos patience{0};   // max(): endless; 0: does not wait
  Nanos away{0};       // then it returns with its ticket after this time; 0: it gives up
  Nanos dying{0};      // of the command, after TERM
  bool fails = false;  // its command, if it ends by itself
  OnceUse once = OnceUse::none;
  uint64_t key = 0;  // of --once
  std::optional<uint64_t> max_failures{};
  uint64_t replicas = 0;
  bool supersedes = false;
  std::optional<uint64_t> number{};  // of --supersede=N
  bool while_closed = false;
  Millis urgent{0};
  Millis min_hold{0};
};

// How far apart successes are with --once-within, and how long a period is.
inline constexpr Nanos kOnceWithin = 20s;
inline constexpr Nanos kOncePeriod = 60s;

struct FaultRate {
  FaultKind kind;
  double each;  // how many for each run
  Nanos shortest{0}, longest{0};
  Nanos amount{0};  // at most, either way
};

// A kind of world.
struct Setting {
  std::string name;
  size_t servers = 1;
  size_t hosts = 20;
  size_t locks = 2;
  size_t runs = 60;
  Nanos lasts{300s};  // in which all runs come
  std::vector<Millis> ttls{Millis(3000), Millis(10'000), Millis(30'000)};
  Nanos usual_hold{500ms};
  double long_holds = 0.2;  // up to three leases
  double endless = 0.5;     // wait without a limit
  double never = 0.1;       // do not wait
  double returning = 0;     // wait for 100 s a call, and return with a ticket until they are served
  bool modes = false;       // slots and shared ones among them
  double once = 0;          // have their work done once
  double failing = 0;       // fail
  double superseding = 0;   // replace those that wait
  double while_closed = 0;  // may pass a closure
  double urgent = 0;        // count as if they had come sooner
  double min_hold = 0;      // leave the lock taken for a while after they came
  uint64_t replicas = 0;    // that have to confirm each grant
  uint64_t versions = 1;    // of rlock, each with its own scripts: 1 or 2
  bool sentinels = false;   // can be asked whether a failover is under way
  Nanos clock_gap{0};       // of two masters, at most
  Rates rates{};
  int64_t drift_ppm = 4800;  // of each clock, at most: two differ by less than 1 %
  Nanos skew{2s};            // of the wall clocks, at most
  std::vector<FaultRate> faults{};
  std::set<Check> checks{Check::exclusion, Check::tokens,   Check::order,   Check::prompt,
                         Check::left,      Check::repeated, Check::done,    Check::newest,
                         Check::broken,    Check::closed,   Check::min_hold};
  std::set<std::string> left_out{};  // by shrink.cpp
  Nanos period{0};  // of cron: each host comes again and again, at the same moment as the others
  bool by_own_clock = false;  // or rather at the moment that its wall clock shows
};

// 2025-06-15: what servers and hosts show when the world begins.
inline constexpr Nanos kEpoch = std::chrono::seconds(1'750'000'000);

// How the clocks of a host begin.
struct HostClocks {
  int64_t drift;
  Nanos since_boot;
  Nanos skew;  // of the wall clock
};
HostClocks clocks_of_host(const Setting& setting, uint64_t seed, size_t host);
int64_t random_drift(Chance& chance, const Setting& setting);

struct Scenario {
  Setting setting;
  uint64_t seed = 0;
  std::vector<Run> runs;
  std::vector<Fault> faults;
  // What is left of them after others were left out: indices.
  std::vector<size_t> kept_runs, kept_faults;
};

Scenario make_scenario(const Setting& setting, uint64_t seed);
std::string describe(const Fault& fault);
std::string describe(const Run& run);
std::string in_seconds(Nanos time);

}  // namespace rlock::sim
