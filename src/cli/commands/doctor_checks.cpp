#include "cli/commands/doctor_checks.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <span>
#include <utility>

#include "cli/output/record.hpp"
#include "redis/net/tls.hpp"
#include "util/duration.hpp"

namespace rlock::cli {
namespace {

using redis::ServerReport;

// Of those that INFO and CONFIG would tell.
constexpr const char* kAllowInfo =
    "let this user run INFO and CONFIG GET for the doctor (+info +config|get)";

struct Version {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Version&) const = default;
};

// What to type to have `words` done at the server.
std::string redis_cli(const redis::Server& server, const std::string& words) {
  std::string text = "redis-cli";
  if (server.transport == redis::Transport::unix_socket) {
    text += " -s " + shell_quoted(server.path);
  } else {
    text += " -h " + server.host + " -p " + std::to_string(server.port);
  }
  return text + (server.tls != nullptr ? " --tls " : " ") + words;
}

Version parse_version(std::string_view text) {
  Version version;
  const char* end = text.data() + text.size();
  auto [dot, error] = std::from_chars(text.data(), end, version.major);
  if (error == std::errc() && dot != end) std::from_chars(dot + 1, end, version.minor);
  return version;
}

Check reachable(const ServerReport& report) {
  if (!report.contact_error) return {"reachable", Grade::ok, "it answers"};
  const std::string& text = report.contact_error->text;
  if (text.find("TLS: ") != text.npos) {
    const bool named = text.find("it is not for") != text.npos;
    const bool trust =
        text.find("self-signed") != text.npos || text.find("no trusted CA") != text.npos;
    return {"tls", Grade::fail, text,
            named   ? "--sni NAME, with a name that the certificate has"
            : trust ? "--cacert FILE, with the authority that signed its certificate"
                    : "check the scheme of the URL, --cert and --key, and the certificate's dates"};
  }
  if (report.contact_error->kind == ErrorKind::denied) {
    return {"access", Grade::fail, text, "check user, password and the server's ACL"};
  }
  return {"reachable", Grade::fail, text, "check the URL, the server and what lies between"};
}

struct FixedRelease {
  Version branch;
  int patch;
};

// The first releases of each branch in which Lua scripts cannot break out (CVE-2025-49844 and its
// kin). Branches that were given up are a matter of whoever packages them.
constexpr FixedRelease kFixedRedis[] = {{{6, 2}, 20}, {{7, 2}, 11}, {{7, 4}, 6},
                                        {{8, 0}, 4},  {{8, 2}, 2},  {{8, 6}, 3}};
constexpr FixedRelease kFixedValkey[] = {{{7, 2}, 11}, {{8, 0}, 6}, {{8, 1}, 4}};

int patch_of(std::string_view text) {
  size_t dot = text.rfind('.');
  int patch = 0;
  if (dot != text.npos) std::from_chars(text.data() + dot + 1, text.data() + text.size(), patch);
  return patch;
}

bool has_known_hole(std::string_view text, std::span<const FixedRelease> table) {
  const Version version = parse_version(text);
  return std::any_of(table.begin(), table.end(), [&](const FixedRelease& fixed) {
    return fixed.branch == version && patch_of(text) < fixed.patch;
  });
}

// Servers that speak Redis, by the field of INFO that gives them away.
constexpr std::pair<const char*, const char*> kOtherServers[] = {
    {"dragonfly_version", "Dragonfly "},
    {"garnet_version", "Garnet "},
    {"kvrocks_version", "Kvrocks "}};

Check version(const ServerReport& report) {
  constexpr Version kOldestRedis{6, 2};
  constexpr Version kOldestValkey{7, 2};
  for (const auto& [field, name] : kOtherServers) {
    if (std::string own = report.info_field(field); !own.empty()) {
      return {"version", Grade::ok, name + own};
    }
  }
  const std::string valkey = report.info_field("valkey_version");
  const std::string text = valkey.empty() ? report.info_field("redis_version") : valkey;
  if (text.empty()) return {"version", Grade::warn, "not told", kAllowInfo};
  const std::string name = (valkey.empty() ? "Redis " : "Valkey ") + text;
  if (parse_version(text) < (valkey.empty() ? kOldestRedis : kOldestValkey)) {
    return {"version", Grade::fail, name, "needs at least Redis 6.2 or Valkey 7.2"};
  }
  const std::span<const FixedRelease> table = valkey.empty()
                                                  ? std::span<const FixedRelease>(kFixedRedis)
                                                  : std::span<const FixedRelease>(kFixedValkey);
  if (has_known_hole(text, table)) {
    return {"version", Grade::warn, name + ": scripts of any user can break out (CVE-2025-49844)",
            "install the newest release of this branch"};
  }
  return {"version", Grade::ok, name};
}

std::string listed(const std::vector<std::string>& commands) {
  std::string list;
  for (const std::string& command : commands) {
    list.append(list.empty() ? "" : ", ").append(command);
  }
  return list;
}

Check commands(const ServerReport& report, const std::string& acl_rule) {
  if (!report.denied_commands.empty()) {
    return {"commands", Grade::fail, "this user may not: " + listed(report.denied_commands),
            redis_cli(report.server, "ACL SETUSER NAME on '>PASSWORD' '" + acl_rule + "'")};
  }
  if (!report.missing_commands.empty()) {
    return {"commands", Grade::fail, "the server does not have: " + listed(report.missing_commands),
            "give it these commands back (rename-command, a proxy), or use another server"};
  }
  if (report.error) {
    return {"commands", Grade::fail, report.error->text, "it cannot hold locks as it is"};
  }
  return {"commands", Grade::ok, "this user may run all that rlock runs"};
}

Check scripts(const ServerReport& report) {
  if (!report.atomic) return {"scripts", Grade::warn, "not tried", "see the point commands"};
  if (*report.atomic) return {"scripts", Grade::ok, "they run one after the other"};
  return {"scripts", Grade::fail, "they run side by side: two runs can hold one lock",
          "have the server run scripts alone (Garnet: --lua-transaction-mode; Dragonfly: no "
          "disable-atomicity), or use another one"};
}

Check waiting(const ServerReport& report) {
  if (!report.blocking_error) return {"waiting", Grade::ok, "a waiter can block there"};
  return {"waiting", Grade::warn,
          report.blocking_error->text + ": each waiter asks about once a second instead",
          "let BLPOP through, or connect without the proxy that stands before the server"};
}

// Nothing: the URL names no database, or those of the server are apart.
std::optional<Check> databases(const ServerReport& report) {
  if (!report.single_database) return std::nullopt;
  const std::string db = "/" + std::to_string(report.server.db);
  return Check{"databases", Grade::warn,
               "SELECT changes nothing: " + db + " is the same as no database",
               "leave " + db + " out of the URL, and tell locks apart by --prefix"};
}

Check role(const ServerReport& report) {
  const std::string role = report.info_field("role");
  if (report.info_field("redis_mode") == "sentinel") {
    return {"role", Grade::fail, "a Sentinel, not a server with data",
            "use redis+sentinel://HOST/MASTER"};
  }
  if (role.empty()) return {"role", Grade::warn, "not told", kAllowInfo};
  if (role == "master") return {"role", Grade::ok, "master"};
  if (role == "active-replica") {
    return {"role", Grade::fail,
            "an active replica: two masters take writes, and after a split one of them is believed",
            "use a server of its own for locks, without active-replica"};
  }
  return {"role", Grade::fail, "a replica: what is written here is refused or lost",
          "give the master's address, or redis+sentinel:// to have it looked up"};
}

// All keys of a lock have an end, so that the volatile policies take them, too.
Check eviction(const ServerReport& report) {
  const std::string policy = report.info_field("maxmemory_policy");
  if (policy.empty()) return {"eviction", Grade::warn, "not told", kAllowInfo};
  if (policy == "noeviction") return {"eviction", Grade::ok, policy};
  const std::string limit = report.info_field("maxmemory");
  const bool limited = !limit.empty() && limit != "0";
  return {"eviction", limited ? Grade::fail : Grade::warn,
          policy + (limited ? ": short of memory it deletes locks that are held"
                            : ": with a maxmemory it would delete locks that are held"),
          redis_cli(report.server, "CONFIG SET maxmemory-policy noeviction")};
}

Check persistence(const ServerReport& report) {
  const std::string advice = redis_cli(report.server, "CONFIG SET appendonly yes") + "; " +
                             redis_cli(report.server, "CONFIG SET appendfsync always");
  const std::string aof = report.info_field("aof_enabled");
  if (aof.empty() && !report.info_field("dragonfly_version").empty()) {
    return {"persistence", Grade::warn, "snapshots alone: a restart forgets the locks since",
            "a server with an append-only file, where a restart must not free locks"};
  }
  if (aof.empty()) return {"persistence", Grade::warn, "not told", kAllowInfo};
  if (aof != "1") {
    bool snapshots = report.save && !report.save->empty();
    return {"persistence", Grade::warn,
            snapshots ? "snapshots alone: a restart forgets the locks since the last one"
                      : "none: a restart forgets every lock",
            advice};
  }
  if (!report.fsync)
    return {"persistence", Grade::warn, "append-only file, fsync not told", kAllowInfo};
  if (*report.fsync == "always")
    return {"persistence", Grade::ok, "append-only file, fsync always"};
  return {
      "persistence", Grade::warn,
      "append-only file, fsync " + *report.fsync + ": a crash of its host forgets the last moments",
      advice};
}

Check clock(const ServerReport& report) {
  constexpr Millis kFar{1'000};
  if (!report.clock_ahead)
    return {"clock", Grade::warn, "not told", "let this user run TIME (+time)"};
  Millis ahead = *report.clock_ahead;
  bool behind = ahead < Millis(0);
  Millis offset = behind ? -ahead : ahead;
  std::string text =
      util::format_duration(offset) + (behind ? " behind" : " ahead of") + " this host";
  if (offset <= kFar) return {"clock", Grade::ok, text};
  return {"clock", Grade::warn, text,
          "have both keep time by NTP: leases do not depend on it, the times in messages and the "
          "growth "
          "of tokens after a loss of data do"};
}

Check round_trip(const ServerReport& report) {
  constexpr Millis kSlow{50};
  auto took = std::chrono::duration<double, std::milli>(report.round_trip.value_or(Nanos(0)));
  char text[32];
  std::snprintf(text, sizeof text, "%.2f ms", took.count());
  if (took <= kSlow) return {"round trip", Grade::ok, text};
  return {"round trip", Grade::warn, text,
          "a run waits for two of these: a nearer server is quicker"};
}

bool is_local(const redis::Server& server) {
  return server.transport == redis::Transport::unix_socket || server.host == "localhost" ||
         server.host == "::1" || server.host.starts_with("127.");
}

Check encryption(const redis::Server& server) {
  if (server.tls != nullptr && server.tls->verify() == redis::Verify::nothing) {
    return {"tls", Grade::warn, "its certificate is not verified: anybody may answer for it",
            "--cacert FILE in the place of --insecure"};
  }
  if (server.tls != nullptr) return {"tls", Grade::ok, "its certificate was checked"};
  if (is_local(server)) return {"tls", Grade::ok, "not needed: it does not leave this machine"};
  return {"tls", Grade::warn, "none: password and command lines can be read on the way",
          "use rediss://, or a network that nobody else is on"};
}

}  // namespace

std::string_view to_string(Grade grade) {
  switch (grade) {
    case Grade::ok:
      return "ok";
    case Grade::warn:
      return "warn";
    case Grade::fail:
      return "fail";
  }
  return "fail";
}

Diagnosis diagnose(const ServerReport& report, const std::string& prefix, redis::ServerKind kind) {
  Diagnosis diagnosis{report.server.label(), {reachable(report)}};
  if (report.contact_error) return diagnosis;
  for (Check& check : std::array{version(report), commands(report, redis::least_acl(prefix, kind)),
                                 scripts(report), waiting(report), role(report), eviction(report),
                                 persistence(report), clock(report), round_trip(report),
                                 encryption(report.server)}) {
    diagnosis.checks.push_back(std::move(check));
  }
  if (auto check = databases(report)) diagnosis.checks.push_back(*std::move(check));
  return diagnosis;
}

Check local_check(const redis::Server& server) {
  return {"local", Grade::ok,
          "started on demand, stays for the next run; to end it: redis-cli -s " + server.path +
              " shutdown"};
}

Check independence_check(const std::vector<ServerReport>& reports) {
  std::map<std::string, std::string> seen;
  for (const ServerReport& report : reports) {
    const std::string id = report.info_field("run_id");
    if (id.empty()) continue;
    auto [before, fresh] = seen.emplace(id, report.server.label());
    if (fresh) continue;
    return {"independence", Grade::fail,
            before->second + " and " + report.server.label() + " are the same server",
            "a quorum counts only different ones: give each URL a server of its own"};
  }
  if (seen.size() == reports.size())
    return {"independence", Grade::ok, "all are different servers"};
  return {"independence", Grade::warn, "not every server told who it is", kAllowInfo};
}

}  // namespace rlock::cli
