#include <algorithm>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>

#include "cli/commands/doctor_findings.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

// The checks of a Sentinel group and of a cluster as a whole.
namespace rlock::cli {
namespace {

using redis::ClusterReport;
using redis::GroupReport;
using redis::SentinelReport;

std::string count_of(size_t some, size_t all) {
  return util::format("{} of {}", some, all);
}

std::optional<Check> sentinels(const GroupReport& report) {
  size_t answer = 0;
  std::string errors;
  std::string reset;
  bool denied = false;
  for (const SentinelReport& one : report.sentinels) {
    if (!one.error) {
      ++answer;
      util::append(reset, "; ",
                   admin_cli(one.server, "SENTINEL RESET " + util::shell_quoted(report.name)));
      continue;
    }
    errors += "; " + one.error->text;
    denied = denied || one.error->kind == ErrorKind::denied;
  }
  const std::string text = count_of(answer, report.sentinels.size()) + " answer" + errors;
  if (answer == report.sentinels.size()) return ok(text);
  const bool few = 2 * answer <= report.existing;
  if (few && answer > 0) {
    return fail(util::format("{}; together the sentinels know of {}", text, report.existing),
                util::format("runs wait until more than half of them answer; if some do not exist "
                             "any more, make each of the others forget them, 30 s apart: {}",
                             reset));
  }
  return graded(answer == 0 ? Grade::fail : Grade::warn, text,
                denied ? "check sentinel_username and sentinel_password; this user needs " +
                             std::string(redis::kSentinelAcl)
                       : "check these sentinels, and the name of the master in the URL");
}

std::optional<Check> agreement(const GroupReport& report) {
  std::string named;
  bool unanimous = true;
  const std::string* first = nullptr;
  for (const SentinelReport& one : report.sentinels) {
    if (one.error) continue;
    if (first == nullptr) first = &one.master;
    unanimous = unanimous && one.master == *first;
    util::append(named, ", ", util::format("{} names {}", one.server.label(), one.master));
  }
  if (!report.master) {
    return fail(named.empty() ? "no sentinel names a master" : "no majority: " + named,
                "runs wait until a majority of the sentinels that exist name the same master");
  }
  if (unanimous) return ok(report.master->label() + " (all sentinels agree)");
  return warn(named, "a failover is under way, or a sentinel is cut off");
}

// The command that allows the user of a sentinel what rlock runs there.
std::string sentinel_remedy(const redis::Server& server) {
  const std::string& user = server.user;
  std::string words = "ACL SETUSER " + util::shell_quoted(user.empty() ? "default" : user);
  std::istringstream rule(redis::kSentinelAcl);
  for (std::string word; rule >> word;) {
    if (word.starts_with('+')) words += " " + util::shell_quoted(word);
  }
  return admin_cli(server, words) +
         comment(server, "at each sentinel; to keep it after a restart: SENTINEL FLUSHCONFIG");
}

// Whether a run learns how many sentinels exist, of which it needs a majority. nullopt if none
// answers.
std::optional<Check> counting(const GroupReport& report) {
  size_t answer = 0;
  for (const SentinelReport& one : report.sentinels) {
    if (one.error) continue;
    ++answer;
    for (const char* command : {"SENTINEL MYID", "SENTINEL SENTINELS"}) {
      const Error* error = failure_of(one.failures, command);
      if (error == nullptr) continue;
      Check found = not_tested(command, *error, " at " + one.server.label());
      found.detail +=
          ": a run does not learn which sentinels exist, and may mistake a majority of those in "
          "the URL for a majority of all";
      if (error->kind == ErrorKind::denied) found.advice = sentinel_remedy(one.server);
      return found;
    }
  }
  if (answer == 0) return std::nullopt;
  return ok(util::format("together the sentinels know of {}", report.existing));
}

// nullopt without a master, which is another failure.
std::optional<Check> failover(const GroupReport& report) {
  constexpr const char* kCommand = "SENTINEL CKQUORUM";
  if (!report.master) return std::nullopt;
  for (const SentinelReport& one : report.sentinels) {
    const Error* error = failure_of(one.failures, kCommand);
    if (error == nullptr) continue;
    if (error->kind == ErrorKind::denied || error->cause == Cause::missing_command) {
      return not_tested(kCommand, *error, " at " + one.server.label());
    }
    return warn(error->text, "if the master fails now, no replica will replace it");
  }
  return ok("there are enough sentinels for a failover");
}

std::optional<Check> seeds(const ClusterReport& report) {
  const size_t silent = report.seed_errors.size();
  std::string text = count_of(report.seeds - silent, report.seeds) + " answer";
  bool denied = false;
  for (const Error& error : report.seed_errors) {
    text += "; " + error.text;
    denied = denied || error.kind == ErrorKind::denied;
  }
  if (silent == 0) return ok(text);
  return graded(
      silent == report.seeds ? Grade::fail : Grade::warn, text,
      denied ? "check the user and the password, and allow this user to run CLUSTER INFO and "
               "CLUSTER NODES (+cluster|info +cluster|nodes)"
             : "check the URL, and that its servers are nodes of a cluster");
}

std::optional<Check> state(const ClusterReport& report) {
  if (report.is_silent()) return std::nullopt;
  if (report.state == "ok") return ok("the state of the cluster is ok");
  return fail("the state of the cluster is " + (report.state.empty() ? "unknown" : report.state),
              "redis-cli --cluster check HOST:PORT");
}

std::optional<Check> slots(const ClusterReport& report) {
  if (report.is_silent()) return std::nullopt;
  const std::string text = count_of(report.slots_served, redis::kSlots) + " slots are served";
  if (report.slots_served == redis::kSlots) return ok(text);
  return fail(text,
              "locks in the other slots cannot be acquired: redis-cli --cluster fix HOST:PORT");
}

// How much longer a failover takes than its setting: for the votes, and until runs reach the new
// master.
constexpr Millis kVotes{5'000};

// ---- the rows: what is checked, in the order of the report ----

constexpr Row<GroupReport> kGroupRows[] = {{"sentinels", sentinels},
                                           {"counting", counting},
                                           {"master", agreement},
                                           {"failover", failover}};

constexpr Row<ClusterReport> kClusterRows[] = {
    {"seeds", seeds}, {"cluster", state}, {"slots", slots}};

}  // namespace

Diagnosis diagnose(const GroupReport& report) {
  return diagnosis_of(report, report.label, kGroupRows);
}

Diagnosis diagnose(const ClusterReport& report) {
  return diagnosis_of(report, report.label, kClusterRows);
}

Check outage(const lock::LeaseMonitor::Settings& lease, Millis takes, const std::string& setting) {
  using namespace std::chrono_literals;
  const Millis survived = lock::survived_outage(lease);
  const std::string text = util::format(
      "a failover takes about {} ({}), and a run with --ttl {} survives every outage of up to {}",
      util::format_duration(takes), setting, util::format_duration(lease.ttl),
      util::format_duration(survived));
  if (survived >= takes) return {"outage", Grade::ok, text};
  lock::LeaseMonitor::Settings longer = lease;
  while (longer.ttl <= util::kLongestDuration && lock::survived_outage(longer) < takes) {
    longer.ttl += std::max<Millis>(10s, longer.ttl / 8);
    longer.ttl -= longer.ttl % (longer.ttl < 10min ? Millis(10s) : Millis(1min));
  }
  const std::string ttl = longer.ttl <= util::kLongestDuration
                              ? util::format("use --ttl {}, or ", util::format_duration(longer.ttl))
                              : "";
  return {"outage", Grade::warn, text,
          ttl + "make the failover quicker: now a failover stops every run"};
}

namespace {

std::optional<Check> outage_not_tested(const redis::Failures& failures, const char* command) {
  const Error* error = failure_of(failures, command);
  return error == nullptr ? std::nullopt
                          : std::optional(named("outage", not_tested(command, *error)));
}

}  // namespace

std::optional<Check> outage(const GroupReport& report, const lock::LeaseMonitor::Settings& lease) {
  std::optional<Millis> longest;
  for (const SentinelReport& one : report.sentinels) longest = std::max(longest, one.down_after);
  if (!longest) {
    for (const SentinelReport& one : report.sentinels) {
      if (auto why = outage_not_tested(one.failures, "SENTINEL MASTER")) return why;
    }
    return std::nullopt;
  }
  return outage(lease, *longest + kVotes,
                util::format("down-after-milliseconds {}", longest->count()));
}

std::optional<Check> outage(const ClusterReport& report,
                            const lock::LeaseMonitor::Settings& lease) {
  if (!report.node_timeout) return outage_not_tested(report.failures, "CONFIG GET");
  // Nodes ask each other at least every half of this time.
  return outage(lease, *report.node_timeout * 3 / 2 + kVotes,
                util::format("cluster-node-timeout {}", report.node_timeout->count()));
}

}  // namespace rlock::cli
