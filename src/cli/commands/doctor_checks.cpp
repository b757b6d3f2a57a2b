#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "cli/commands/doctor_findings.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "lock/timing.hpp"
#include "redis/open.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using redis::ServerKind;
using redis::ServerReport;

// The advice if the quorum, or the comparison of servers, lacks the replies to these commands.
constexpr const char* kAllowInfo = "allow this user to run INFO and CONFIG GET (+info +config|get)";

struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;
  auto operator<=>(const Version&) const = default;
};

std::string address_of(const redis::Endpoint& server) {
  return util::shell_quoted(server.host + ":" + std::to_string(server.port));
}

// Changes the settings ("NAME VALUE") in such a way that they survive a restart of the server.
std::string config_set(const ServerReport& report, std::initializer_list<const char*> settings) {
  std::string text;
  for (const char* setting : settings) {
    text += admin_cli(report.server, std::string("CONFIG SET ") + setting) + " && ";
  }
  const auto file = report.info.find("config_file");
  if (file == report.info.end() || !file->second.empty()) {
    return text + admin_cli(report.server, "CONFIG REWRITE") + comment(report.server, {});
  }
  text.resize(text.size() - std::string_view(" && ").size());
  return text + comment(report.server, "until the server restarts: it has no configuration file");
}

// Adds to the permissions of rlock's user and removes none, because an administrator may use the
// same user.
std::string acl_remedy(const ServerReport& report) {
  const std::string& user = report.server.user;
  std::string words = "ACL SETUSER " + util::shell_quoted(user.empty() ? "default" : user);
  std::istringstream rule(
      redis::least_acl(report.use.prefix, report.use.kind, report.use.replicas));
  for (std::string word; rule >> word;) {
    // A server refuses a pattern of keys for a user with access to every key.
    const bool missing_keys = word.starts_with('~') && report.keys_denied;
    if (missing_keys || word.starts_with('+')) words += " " + util::shell_quoted(word);
  }
  return admin_cli(report.server, words) +
         comment(
             report.server,
             "to keep it after a restart: ACL SAVE, or CONFIG REWRITE where there is no aclfile");
}

Version parse_version(std::string_view text) {
  auto next = [&text] {
    const std::string_view digits = util::leading_digits(text);
    text.remove_prefix(std::min(text.size(), digits.size() + 1));
    return util::parse_number<int>(digits).value_or(0);
  };
  const int major = next();
  const int minor = next();
  return {major, minor, next()};
}

// ---- the checks of one server: a row in kServerRows has the name of each ----

Check contact_failure(const ServerReport& report) {
  const Error& error = *report.contact_error;
  if (is_about_tls(error.cause)) return {"tls", Grade::fail, error.text, remedy_for(error, "")};
  if (error.cause == Cause::select_denied) {
    return {"access", Grade::fail, error.text, acl_remedy(report)};
  }
  if (error.text.find("protected mode") != error.text.npos) {
    return {"access", Grade::fail, error.text,
            "on the server's host: redis-cli CONFIG SET requirepass PASSWORD, or redis-cli CONFIG "
            "SET protected-mode no"};
  }
  if (error.kind == ErrorKind::denied) {
    return {"access", Grade::fail, error.text, "check the user, the password and the server's ACL"};
  }
  return {"reachable", Grade::fail, error.text,
          remedy_for(error, "check the URL, the server, and the network to it")};
}

std::optional<Check> reachable(const ServerReport&) {
  return ok("the server answers");
}

// The first release of each branch in which Lua scripts cannot escape their sandbox (CVE-2025-49844
// and similar). Branches without such a release are left to the distributions that maintain them.
constexpr Version kFixedRedis[] = {{6, 2, 20}, {7, 2, 11}, {7, 4, 6},
                                   {8, 0, 4},  {8, 2, 2},  {8, 6, 3}};
constexpr Version kFixedValkey[] = {{7, 2, 11}, {8, 0, 6}, {8, 1, 4}};

bool has_known_vulnerability(const Version& version, std::span<const Version> table) {
  return std::any_of(table.begin(), table.end(), [&](const Version& fixed) {
    return fixed.major == version.major && fixed.minor == version.minor && version < fixed;
  });
}

// Other servers that speak the Redis protocol, with the field of INFO that identifies them.
constexpr std::pair<const char*, const char*> kOtherServers[] = {
    {"dragonfly_version", "Dragonfly "},
    {"garnet_version", "Garnet "},
    {"kvrocks_version", "Kvrocks "}};

std::optional<Check> version(const ServerReport& report) {
  constexpr Version kOldestRedis{6, 2};
  constexpr Version kOldestValkey{7, 2};
  for (const auto& [field, name] : kOtherServers) {
    if (std::string own = report.info_field(field); !own.empty()) {
      return ok(name + own);
    }
  }
  std::string text = report.info_field("valkey_version");
  const bool valkey = !text.empty();
  if (!valkey) text = report.info_field("redis_version");
  if (text.empty()) return unreported("its version");
  const std::string name = (valkey ? "Valkey " : "Redis ") + text;
  const Version found = parse_version(text);
  if (found < (valkey ? kOldestValkey : kOldestRedis)) {
    return fail(name,
                "upgrade the server: rlock needs Redis 6.2 or Valkey 7.2, or a later version");
  }
  if (valkey ? has_known_vulnerability(found, kFixedValkey)
             : has_known_vulnerability(found, kFixedRedis)) {
    return warn(name + ": in this version users can break out of the Lua sandbox (CVE-2025-49844)",
                util::format("install your distribution's security update, or the latest release "
                             "of this branch; an update may keep the version: the package's "
                             "changelog names what it fixes (apt changelog {})",
                             valkey ? "valkey-server" : "redis-server"));
  }
  return ok(name);
}

// nullopt unless the ACL denies the keys.
std::optional<Check> keys(const ServerReport& report) {
  if (!report.keys_denied) return std::nullopt;
  return fail(util::format("this user may not use keys that begin with \"{}\": its ACL or --prefix "
                           "names other ones",
                           report.use.prefix),
              acl_remedy(report));
}

std::optional<Check> commands(const ServerReport& report) {
  if (report.keys_denied) return std::nullopt;
  if (!report.denied_commands.empty()) {
    return fail("this user may not run " + util::joined(report.denied_commands, ", "),
                acl_remedy(report));
  }
  if (!report.missing_commands.empty()) {
    return fail(
        "the server lacks " + util::joined(report.missing_commands, ", "),
        "enable these commands (check rename-command and any proxy), or use another server");
  }
  if (report.error) {
    return fail(
        report.error->text,
        remedy_for(*report.error, "the server cannot hold locks in this state: read its log"));
  }
  return ok("this user may run every command that rlock needs");
}

std::optional<Check> scripts(const ServerReport& report) {
  if (!report.atomic) {
    if (!report.atomic_error) return warn("not tested", kFixFirst);
    return warn("not tested: " + report.atomic_error->text,
                remedy_for(*report.atomic_error, kFixFirst));
  }
  if (*report.atomic) return ok("the server runs one script at a time");
  return fail(
      "the server runs scripts concurrently: two runs could hold the same lock",
      "configure it to run one script at a time (Garnet: --lua-transaction-mode; Dragonfly: "
      "without disable-atomicity), or use another server");
}

std::optional<Check> waiting(const ServerReport& report) {
  if (!report.blocking_error) return ok("waiters can block on the server");
  if (report.blocking_error->kind == ErrorKind::denied || report.error) {
    return not_tested("BLPOP", *report.blocking_error);
  }
  return warn(report.blocking_error->text + ": each waiter polls about once a second instead",
              "allow BLPOP, or connect without the proxy in front of the server");
}

// nullopt if the URL names no database, or if the server keeps its databases apart.
std::optional<Check> databases(const ServerReport& report) {
  if (report.databases_error) {
    return warn("not tested: " + report.databases_error->text,
                remedy_for(*report.databases_error, kFixFirst));
  }
  if (!report.single_database) return std::nullopt;
  const std::string db = "/" + std::to_string(report.server.db);
  return warn(
      util::format("SELECT has no effect: a URL with {} leads to the same keys as one without it",
                   db),
      util::format("remove {} from the URL, and use --prefix to keep locks apart", db));
}

std::optional<Check> role(const ServerReport& report) {
  const std::string role = report.info_field("role");
  if (role.empty()) return unreported("its role");
  if (role == "master") return ok("master");
  if (role == "active-replica") {
    return fail(
        "an active replica: two masters accept writes, and after a split one loses its writes",
        "use a separate server for locks, without active-replica");
  }
  return fail("a replica: it rejects writes, or loses them", kUseMaster);
}

// For a member of a quorum.
std::optional<Check> counted(const ServerReport& report) {
  if (report.use.kind != ServerKind::quorum_member) return std::nullopt;
  if (!report.membership_error) return ok("the quorum counts this server");
  const Error& error = *report.membership_error;
  if (error.cause != Cause::not_counted) {
    return warn("not tested: " + error.text, remedy_for(error, kFixFirst));
  }
  const auto uptime = util::parse_number<int64_t>(report.info_field("uptime_in_seconds"));
  if (!uptime) return fail(error.text, kAllowInfo);
  constexpr auto kEnough =
      std::chrono::duration_cast<std::chrono::seconds>(timing::kLongestQuorumLease);
  // Negative if its clock was set back since it started.
  const std::chrono::seconds up(std::clamp<int64_t>(*uptime, 0, kEnough.count()));
  const Millis left = kEnough - up;
  return fail(util::format("the quorum does not count this server for another {}, because it may "
                           "have lost locks when it restarted",
                           util::format_duration(std::max(Millis(1'000), left))),
              "wait until then: a lock needs a majority of servers that are counted");
}

// For a node of a cluster.
std::optional<Check> moving_slots(const ServerReport& report) {
  constexpr size_t kMostShown = 8;
  if (report.use.kind != ServerKind::cluster_node) return std::nullopt;
  std::vector<std::string> slots = report.moving_slots;
  if (slots.empty()) return ok("none");
  const size_t hidden = slots.size() - std::min(slots.size(), kMostShown);
  slots.resize(slots.size() - hidden);
  if (hidden > 0) slots.push_back(util::format("{} more", hidden));
  return warn(util::joined(slots, ", ") +
                  ": a lock there may be refused (TRYAGAIN) until its keys "
                  "are on one node",
              admin_cli(report.server, "--cluster fix " + address_of(report.server)) +
                  comment(report.server, "unless a resharding is under way"));
}

// `2s behind`, `2s ahead of`: a clock compared with another.
std::string ahead_of(Millis ahead) {
  return ahead < Millis(0) ? util::format_duration(-ahead) + " behind"
                           : util::format_duration(ahead) + " ahead of";
}

Check confirming_replicas(const ServerReport& report) {
  for (const char* command : {"ROLE", "WAIT"}) {
    if (const Error* error = failure_of(report.failures, command))
      return not_tested(command, *error);
  }
  std::string text = util::format("{} online", report.replicas.size());
  std::string far, silent;
  for (const redis::ReplicaReport& replica : report.replicas) {
    text += (&replica == &report.replicas.front() ? ": " : ", ") + replica.label;
    constexpr Millis kFar{500};
    if (!replica.clock_ahead) {
      silent = replica.label;
    } else if (std::chrono::abs(*replica.clock_ahead) > kFar) {
      far = util::format("{} is {} that of the master", replica.label,
                         ahead_of(*replica.clock_ahead));
    }
  }
  const uint64_t needed = report.use.replicas;
  if (report.replicas.size() < needed) {
    return fail(text, util::format("add replicas: no run starts until {} of them confirm its grant "
                                   "(--replicas {})",
                                   needed, needed));
  }
  if (report.confirmed && *report.confirmed < report.use.replicas) {
    return fail(text + util::format("; only {} confirmed a write within 1s", *report.confirmed),
                util::format("find out why the others do not answer: with --replicas {} no run "
                             "starts until they do",
                             report.use.replicas));
  }
  if (!far.empty()) {
    return fail(
        text + "; the clock of " + far,
        "synchronise the clocks with NTP: if a replica becomes master, leases expire by its "
        "clock");
  }
  if (!silent.empty()) {
    return warn(text + "; the clock of " + silent + " is unknown",
                "let rlock doctor reach the replicas, and allow this user to run TIME there "
                "(+time)");
  }
  if (report.replicas.size() == needed) {
    return warn(text, util::format("add a replica: with --replicas {}, a failover or an "
                                   "unavailable replica stops all commands until {} replicas "
                                   "follow again",
                                   needed, needed));
  }
  if (!report.info_field("min_slaves_good_slaves").empty()) {
    return warn(
        text + "; min-replicas-to-write is set",
        "remove it: with --replicas it is not needed, and it rejects even releases while a replica "
        "is unavailable");
  }
  return ok(text);
}

// With --replicas, and if a replica is meant to become the master.
std::optional<Check> replicas(const ServerReport& report) {
  if (report.use.replicas > 0) return confirming_replicas(report);
  const ServerKind kind = report.use.kind;
  if (kind != ServerKind::sentinel_master && kind != ServerKind::cluster_node) return std::nullopt;
  if (const Error* error = failure_of(report.failures, "INFO")) return not_tested("INFO", *error);
  if (report.info_field("connected_slaves").empty()) return unreported("its replicas");
  const auto online = std::count_if(report.info.begin(), report.info.end(), [](const auto& field) {
    return field.first.starts_with("slave") &&
           field.second.find("state=online") != std::string::npos;
  });
  if (online > 0) return ok(util::format("{} online", online));
  return warn("none is online: if this master fails, no replica will replace it",
              "add a replica, or find out why it is not connected");
}

// All keys of a lock expire, so the volatile policies evict them, too.
std::optional<Check> eviction(const ServerReport& report) {
  const std::string policy = report.info_field("maxmemory_policy");
  if (policy.empty()) return unreported("maxmemory_policy");
  if (policy == "noeviction") return ok(policy);
  const std::string limit = report.info_field("maxmemory");
  const bool limited = !limit.empty() && limit != "0";
  return graded(
      limited ? Grade::fail : Grade::warn,
      policy + (limited ? ": when memory runs short, the server deletes locks that are held"
                        : ": with maxmemory set, the server would delete locks that are held"),
      config_set(report, {"maxmemory-policy noeviction"}));
}

std::optional<Check> persistence(const ServerReport& report) {
  const std::string advice = config_set(report, {"appendonly yes", "appendfsync always"});
  const std::string aof = report.info_field("aof_enabled");
  if (aof.empty() && !report.info_field("dragonfly_version").empty()) {
    return warn("snapshots only: a restart loses the locks acquired since the last snapshot",
                "use a server with an append-only file if a restart must not free locks");
  }
  if (aof.empty()) return unreported("aof_enabled");
  if (aof != "1") {
    if (!report.save) return warn("no append-only file: a restart loses locks", advice);
    return warn(report.save->empty()
                    ? "none: a restart loses every lock"
                    : "snapshots only: a restart loses the locks acquired since the last snapshot",
                advice);
  }
  if (!report.fsync) {
    const Error* error = failure_of(report.failures, "CONFIG GET");
    Check found = error != nullptr ? not_tested("CONFIG GET", *error) : unreported("appendfsync");
    found.detail = "append-only file; its fsync policy is " + found.detail;
    return found;
  }
  if (*report.fsync == "always") return ok("append-only file, fsync always");
  return warn(
      util::format("append-only file, fsync {}: if its host crashes, the latest locks are lost",
                   *report.fsync),
      advice);
}

// A FLUSHDB, which programs with keys of their own use, frees every lock of the database.
std::optional<Check> neighbours(const ServerReport& report) {
  std::string text;
  if (report.flushes > 0) {
    text = util::format("FLUSHDB or FLUSHALL was called {} since the server started",
                        report.flushes == 1 ? "once" : util::format("{} times", report.flushes));
  }
  if (!report.other_key.empty()) {
    text +=
        util::format("{}another program has keys in this database, such as {}",
                     text.empty() ? "" : "; ", in_quotes(util::shortened(report.other_key, 60)));
  }
  if (text.empty() && failure_of(report.failures, "INFO commandstats") != nullptr) {
    return std::nullopt;
  }
  if (text.empty()) return ok("no other program has been seen in this database");
  const bool cluster = report.use.kind == ServerKind::cluster_node;
  return warn(text, util::format("a FLUSHDB frees every lock: give rlock a {} of its own",
                                 cluster ? "cluster" : "database"));
}

std::optional<Check> clock(const ServerReport& report) {
  constexpr Millis kFar{1'000};
  if (!report.clock_ahead) return unreported("its time");
  const std::string text = ahead_of(*report.clock_ahead) + " this host";
  if (std::chrono::abs(*report.clock_ahead) <= kFar) return ok(text);
  return warn(text,
              "synchronise both clocks with NTP: leases do not depend on them, but the times in "
              "messages do, and so does the order of tokens after a loss of data");
}

std::optional<Check> round_trip(const ServerReport& report) {
  constexpr Millis kSlow{50};
  auto took = std::chrono::duration<double, std::milli>(report.round_trip.value_or(Nanos(0)));
  const std::string text = util::format("{:.2f} ms", took.count());
  if (took <= kSlow) return ok(text);
  return warn(text, "each run waits for two round trips; use a server that is nearer");
}

bool is_local(const redis::Endpoint& server) {
  return server.is_unix() || server.host == "localhost" || server.host == "::1" ||
         server.host.starts_with("127.");
}

std::optional<Check> encryption(const ServerReport& report) {
  const redis::Server& server = report.server;
  if (server.tls != nullptr) {
    if (server.tls->options().verify == redis::Verify::nothing) {
      return warn("the certificate is not verified: anyone could impersonate the server",
                  "use --cacert FILE instead of --insecure");
    }
    if (!report.certificate_end) return ok("the certificate was verified");
    constexpr std::chrono::days kSoon{14};
    const auto end = *report.certificate_end;
    const auto left = end - std::chrono::system_clock::now();
    const auto ms = std::chrono::duration_cast<Millis>(end.time_since_epoch());
    const std::string date = rfc3339(lock::ServerTime{ms.count()}).substr(0, 10);
    if (left >= kSoon) {
      return ok("the certificate was verified; it is valid until " + date);
    }
    return warn(util::format("the certificate expires on {}, in {}", date,
                             util::format_duration(std::chrono::floor<std::chrono::hours>(left))),
                "renew the server's certificate: when it has expired, rlock does not connect");
  }
  if (is_local(server)) return ok("not needed: the connection does not leave this machine");
  return warn("none: the password and the command lines cross the network in plain text",
              "use rediss:// (TLS), or a private network");
}

// Whether several URLs lead to as many different servers.
Check independence_of(const std::vector<ServerReport>& reports) {
  std::map<std::string, std::string> seen;
  for (const ServerReport& report : reports) {
    const std::string id = report.info_field("run_id");
    if (id.empty()) continue;
    auto [before, fresh] = seen.emplace(id, report.server.label());
    if (fresh) continue;
    return fail(
        util::format("{} and {} are the same server", before->second, report.server.label()),
        "a quorum needs different servers: give each URL its own server");
  }
  if (seen.size() == reports.size()) return ok("all servers are different");
  const bool some_silent =
      std::any_of(reports.begin(), reports.end(),
                  [](const ServerReport& report) { return report.contact_error.has_value(); });
  if (some_silent) {
    return warn("some servers did not answer: rlock cannot compare them",
                "run doctor again when every server answers");
  }
  return warn("some servers do not report their identity (run_id)", kAllowInfo);
}

// ---- the rows: what is checked, in the order of the report ----

constexpr Row<ServerReport> kServerRows[] = {{"reachable", reachable},
                                             {"version", version, "INFO"},
                                             {"keys", keys},
                                             {"commands", commands},
                                             {"scripts", scripts},
                                             {"waiting", waiting},
                                             {"role", role, "INFO"},
                                             {"counted", counted},
                                             {"moving slots", moving_slots, "CLUSTER NODES"},
                                             {"eviction", eviction, "INFO"},
                                             {"persistence", persistence, "INFO"},
                                             {"neighbours", neighbours},
                                             {"clock", clock, "TIME"},
                                             {"round trip", round_trip},
                                             {"tls", encryption},
                                             {"replicas", replicas},
                                             {"databases", databases}};

}  // namespace

Diagnosis diagnose(const ServerReport& report) {
  if (report.contact_error) return {report.server.label(), {contact_failure(report)}};
  return diagnosis_of(report, report.server.label(), kServerRows);
}

Check independence(const std::vector<ServerReport>& reports) {
  return named("independence", independence_of(reports));
}

}  // namespace rlock::cli
