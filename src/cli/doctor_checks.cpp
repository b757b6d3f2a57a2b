#include "cli/doctor_checks.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <map>

#include "redis/tls.hpp"
#include "util/duration.hpp"

namespace rlock::cli {
namespace {

using redis::Survey;
using util::Millis;

// Of those that INFO and CONFIG would tell.
constexpr const char* kAllowInfo =
    "let this user run INFO and CONFIG GET for the doctor (+info +config|get)";

struct Version {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Version&) const = default;
};

Version parse_version(std::string_view text) {
  Version version;
  const char* end = text.data() + text.size();
  auto [dot, trouble] = std::from_chars(text.data(), end, version.major);
  if (trouble == std::errc() && dot != end) std::from_chars(dot + 1, end, version.minor);
  return version;
}

Check reachable(const Survey& survey) {
  if (survey.no_contact) {
    bool denied = survey.no_contact->kind == util::ErrorKind::denied;
    return {denied ? "access" : "reachable", Grade::fail, survey.no_contact->text,
            denied ? "check user, password and the server's ACL"
                   : "check the URL, the server and what lies between"};
  }
  return {"reachable", Grade::ok, "it answers"};
}

Check version(const Survey& survey) {
  constexpr Version kOldestRedis{6, 2};
  constexpr Version kOldestValkey{7, 2};
  const std::string valkey = survey.about("valkey_version");
  const std::string text = valkey.empty() ? survey.about("redis_version") : valkey;
  if (text.empty()) return {"version", Grade::warn, "not told", kAllowInfo};
  const std::string name = (valkey.empty() ? "Redis " : "Valkey ") + text;
  if (parse_version(text) < (valkey.empty() ? kOldestRedis : kOldestValkey)) {
    return {"version", Grade::fail, name, "needs at least Redis 6.2 or Valkey 7.2"};
  }
  return {"version", Grade::ok, name};
}

Check commands(const Survey& survey, const std::string& acl_rule) {
  if (!survey.denied.empty()) {
    std::string list;
    for (const std::string& command : survey.denied) {
      list.append(list.empty() ? "" : ", ").append(command);
    }
    return {"commands", Grade::fail, "this user may not: " + list,
            "ACL SETUSER NAME on >PASSWORD " + acl_rule};
  }
  if (survey.trouble) {
    return {"commands", Grade::fail, survey.trouble->text, "it cannot hold locks as it is"};
  }
  return {"commands", Grade::ok, "this user may run all that rlock runs"};
}

Check role(const Survey& survey) {
  const std::string role = survey.about("role");
  if (survey.about("redis_mode") == "sentinel") {
    return {"role", Grade::fail, "a Sentinel, not a server with data",
            "use redis+sentinel://HOST/MASTER"};
  }
  if (role.empty()) return {"role", Grade::warn, "not told", kAllowInfo};
  if (role == "master") return {"role", Grade::ok, "master"};
  return {"role", Grade::fail, "a replica: what is written here is refused or lost",
          "give the master's address, or redis+sentinel:// to have it looked up"};
}

Check eviction(const Survey& survey) {  // L45
  const std::string policy = survey.about("maxmemory_policy");
  if (policy.empty()) return {"eviction", Grade::warn, "not told", kAllowInfo};
  if (policy == "noeviction") return {"eviction", Grade::ok, policy};
  return {"eviction", Grade::warn, policy + ": short of memory it deletes keys, locks among them",
          "CONFIG SET maxmemory-policy noeviction, or a server of its own for locks"};
}

Check persistence(const Survey& survey) {
  constexpr const char* kAdvice = "appendonly yes and appendfsync always";
  const std::string aof = survey.about("aof_enabled");
  if (aof.empty()) return {"persistence", Grade::warn, "not told", kAllowInfo};
  if (aof != "1") {
    bool snapshots = survey.save && !survey.save->empty();
    return {"persistence", Grade::warn,
            snapshots ? "snapshots alone: a restart forgets the locks since the last one"
                      : "none: a restart forgets every lock",
            kAdvice};
  }
  if (!survey.fsync)
    return {"persistence", Grade::warn, "append-only file, fsync not told", kAllowInfo};
  if (*survey.fsync == "always")
    return {"persistence", Grade::ok, "append-only file, fsync always"};
  return {
      "persistence", Grade::warn,
      "append-only file, fsync " + *survey.fsync + ": a crash of its host forgets the last moments",
      kAdvice};
}

Check clock(const Survey& survey) {
  constexpr Millis kFar{1'000};
  if (!survey.clock_ahead)
    return {"clock", Grade::warn, "not told", "let this user run TIME (+time)"};
  Millis ahead = *survey.clock_ahead;
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

Check round_trip(const Survey& survey) {
  constexpr Millis kSlow{50};
  auto took = std::chrono::duration<double, std::milli>(survey.round_trip.value_or(util::Nanos(0)));
  char text[32];
  std::snprintf(text, sizeof text, "%.2f ms", took.count());
  if (took <= kSlow) return {"round trip", Grade::ok, text};
  return {"round trip", Grade::warn, text,
          "a run waits for two of these: a nearer server is quicker"};
}

bool stays_here(const redis::Server& server) {
  return server.transport == redis::Transport::unix_socket || server.host == "localhost" ||
         server.host == "::1" || server.host.starts_with("127.");
}

Check privacy(const redis::Server& server) {
  if (server.tls != nullptr && server.tls->verify() == redis::Verify::nothing) {
    return {"tls", Grade::warn, "its certificate is not verified: anybody may answer for it",
            "--cacert FILE in the place of --insecure"};
  }
  if (server.tls != nullptr) return {"tls", Grade::ok, "its certificate was checked"};
  if (stays_here(server)) return {"tls", Grade::ok, "not needed: it does not leave this machine"};
  return {"tls", Grade::warn, "none: password and command lines can be read on the way",
          "use rediss://, or a network that nobody else is on"};
}

}  // namespace

std::string_view word_of(Grade grade) {
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

Diagnosis diagnose(const Survey& survey, const std::string& prefix, redis::Standing standing) {
  Diagnosis diagnosis{survey.server.label(), {reachable(survey)}};
  if (survey.no_contact) return diagnosis;
  for (Check& check :
       std::array{version(survey), commands(survey, redis::least_acl(prefix, standing)),
                  role(survey), eviction(survey), persistence(survey), clock(survey),
                  round_trip(survey), privacy(survey.server)}) {
    diagnosis.checks.push_back(std::move(check));
  }
  return diagnosis;
}

Check local_check(const redis::Server& server) {
  return {"local", Grade::ok,
          "started on demand, stays for the next run; to end it: redis-cli -s " + server.path +
              " shutdown"};
}

Check independence_check(const std::vector<Survey>& surveys) {
  std::map<std::string, std::string> seen;
  for (const Survey& survey : surveys) {
    const std::string id = survey.about("run_id");
    if (id.empty()) continue;
    auto [before, fresh] = seen.emplace(id, survey.server.label());
    if (fresh) continue;
    return {"independence", Grade::fail,
            before->second + " and " + survey.server.label() + " are the same server",
            "a quorum counts only different ones: give each URL a server of its own"};
  }
  if (seen.size() == surveys.size())
    return {"independence", Grade::ok, "all are different servers"};
  return {"independence", Grade::warn, "not every server told who it is", kAllowInfo};
}

}  // namespace rlock::cli
