#include "cli/commands/doctor.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <map>
#include <span>
#include <sstream>
#include <utility>

#include "cli/commands/commands.hpp"
#include "cli/options/values.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/settings/config.hpp"
#include "cli/settings/connect.hpp"
#include "redis/net/tls.hpp"
#include "redis/open.hpp"
#include "run/guard.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using redis::ClusterReport;
using redis::GroupReport;
using redis::SentinelReport;
using redis::ServerKind;
using redis::ServerReport;

// The advice where INFO and CONFIG GET would have the answer.
constexpr const char* kAllowInfo = "allow this user to run INFO and CONFIG GET (+info +config|get)";

// The advice of what could not be tested because of another fault.
constexpr const char* kMendFirst = "first mend what the failed check above reports";

struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;
  auto operator<=>(const Version&) const = default;
};

bool is_default_user(const redis::Server& server) {
  return server.user.empty() || server.user == "default";
}

// The command line that runs `words`, which are quoted already, on the server as the default user:
// another one seldom has the rights. redis-cli asks for the password, which is never shown.
std::string redis_cli(const redis::Server& server, const std::string& words) {
  std::string text = "redis-cli";
  auto add = [&text](const char* option, const std::string& value) {
    if (!value.empty()) text.append(option).append(shell_quoted(value));
  };
  if (server.is_unix()) {
    add(" -s ", server.path);
  } else {
    add(" -h ", server.host);
    add(" -p ", std::to_string(server.port));
  }
  if (server.tls != nullptr) {
    const redis::TlsOptions& tls = server.tls->options();
    text += tls.verify == redis::Verify::nothing ? " --tls --insecure" : " --tls";
    add(" --cacert ", tls.cacert);
    add(" --cacertdir ", tls.cacertdir);
    add(" --cert ", tls.cert);
    add(" --key ", tls.key.empty() ? tls.cert : tls.key);
    add(" --sni ", tls.sni);
  }
  if (is_default_user(server) && !server.password.empty()) text += " --askpass";
  return text + " " + words;
}

// What to know before it is run; empty: nothing.
std::string comment(const redis::Server& server, std::string text) {
  if (!is_default_user(server)) {
    text += std::string(text.empty() ? "" : "; ") +
            "if the default user may not, add --user NAME --askpass for one who may";
  }
  return text.empty() ? text : "  # " + text;
}

// Changes the settings ("NAME VALUE"), also for the time after a restart of the server.
std::string config_set(const ServerReport& report, std::initializer_list<const char*> settings) {
  std::string text;
  for (const char* setting : settings) {
    text += redis_cli(report.server, std::string("CONFIG SET ") + setting) + " && ";
  }
  const auto file = report.info.find("config_file");
  if (file == report.info.end() || !file->second.empty()) {
    return text + redis_cli(report.server, "CONFIG REWRITE") + comment(report.server, {});
  }
  text.resize(text.size() - std::string_view(" && ").size());
  return text + comment(report.server, "until the server restarts: it has no configuration file");
}

// Adds to the rights of rlock's user, and takes none away: an administrator may log in as the same.
std::string acl_remedy(const ServerReport& report, const std::string& prefix, ServerKind kind) {
  const std::string& user = report.server.user;
  std::string words = "ACL SETUSER " + shell_quoted(user.empty() ? "default" : user);
  std::istringstream rule(redis::least_acl(prefix, kind, report.replicas_needed));
  for (std::string word; rule >> word;) {
    // A server refuses a pattern for a user who may use every key.
    const bool missing_keys = word.starts_with('~') && report.keys_denied;
    if (missing_keys || word.starts_with('+')) words += " " + shell_quoted(word);
  }
  return redis_cli(report.server, words) +
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

// Where the server says why it carries out no command.
const char* advice_for(const Error& error, const char* otherwise) {
  constexpr std::pair<const char*, const char*> kAdvice[] = {
      {"OOM ", "free memory at the server, or raise its maxmemory"},
      {"MISCONF ", "the server cannot save its data: read its log, and free space on its disk"},
      {"LOADING ", "the server reads its data: wait until it has"},
      {"BUSY ", "a script of another client blocks the server: end it with SCRIPT KILL"}};
  for (const auto& [word, advice] : kAdvice) {
    if (error.text.find(word) != error.text.npos) return advice;
  }
  return otherwise;
}

Check reachable(const ServerReport& report, const std::string& remedy) {
  if (!report.contact_error) return {"reachable", Grade::ok, "the server answers"};
  const std::string& text = report.contact_error->text;
  if (text.find("TLS: ") != text.npos || text.find("no TLS handshake") != text.npos) {
    const bool wrong_name = text.find("it is not for") != text.npos;
    const bool untrusted =
        text.find("self-signed") != text.npos || text.find("no trusted CA") != text.npos;
    return {"tls", Grade::fail, text,
            wrong_name  ? "use --sni NAME with a name that is in the certificate"
            : untrusted ? "use --cacert FILE with the authority that signed the certificate"
                        : "check the URL's scheme, --cert, --key and the certificate's dates"};
  }
  if (report.contact_error->kind == ErrorKind::denied) {
    const bool logged_in = text.find("(NOPERM)") != text.npos;
    return {"access", Grade::fail, text,
            logged_in ? remedy : "check the user, the password and the server's ACL"};
  }
  return {"reachable", Grade::fail, text,
          advice_for(*report.contact_error, "check the URL, the server, and the network to it")};
}

// The first release of each branch in which Lua scripts cannot escape their sandbox (CVE-2025-49844
// and similar). Branches without a release are left to the distributions that maintain them.
constexpr Version kFixedRedis[] = {{6, 2, 20}, {7, 2, 11}, {7, 4, 6},
                                   {8, 0, 4},  {8, 2, 2},  {8, 6, 3}};
constexpr Version kFixedValkey[] = {{7, 2, 11}, {8, 0, 6}, {8, 1, 4}};

bool has_known_vulnerability(const Version& version, std::span<const Version> table) {
  return std::any_of(table.begin(), table.end(), [&](const Version& fixed) {
    return fixed.major == version.major && fixed.minor == version.minor && version < fixed;
  });
}

// Other servers that speak the Redis protocol, by the field of INFO that identifies them.
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
  std::string text = report.info_field("valkey_version");
  const bool valkey = !text.empty();
  if (!valkey) text = report.info_field("redis_version");
  if (text.empty()) return {"version", Grade::warn, "unknown", kAllowInfo};
  const std::string name = (valkey ? "Valkey " : "Redis ") + text;
  const Version found = parse_version(text);
  if (found < (valkey ? kOldestValkey : kOldestRedis)) {
    return {"version", Grade::fail, name,
            "upgrade the server: rlock needs Redis 6.2 or Valkey 7.2, or a later version"};
  }
  if (valkey ? has_known_vulnerability(found, kFixedValkey)
             : has_known_vulnerability(found, kFixedRedis)) {
    return {"version", Grade::warn,
            name + ": in this version users can break out of the Lua sandbox (CVE-2025-49844)",
            util::format("install your distribution's security update, or the latest release of "
                         "this branch; an update may keep the version: the package's changelog "
                         "names what it fixes (apt changelog {})",
                         valkey ? "valkey-server" : "redis-server")};
  }
  return {"version", Grade::ok, name};
}

Check commands(const ServerReport& report, const std::string& prefix, const std::string& remedy) {
  if (report.keys_denied) {
    return {"keys", Grade::fail,
            util::format("this user may not use keys that begin with \"{}\": its ACL or --prefix "
                         "names other ones",
                         prefix),
            remedy};
  }
  if (!report.denied_commands.empty()) {
    return {"commands", Grade::fail,
            "this user may not run " + util::joined(report.denied_commands, ", "), remedy};
  }
  if (!report.missing_commands.empty()) {
    return {"commands", Grade::fail,
            "the server lacks " + util::joined(report.missing_commands, ", "),
            "enable these commands (check rename-command and any proxy), or use another server"};
  }
  if (report.error) {
    return {"commands", Grade::fail, report.error->text,
            advice_for(*report.error, "the server cannot hold locks in this state: read its log")};
  }
  return {"commands", Grade::ok, "this user may run every command that rlock needs"};
}

Check scripts(const ServerReport& report) {
  if (!report.atomic) return {"scripts", Grade::warn, "not tested", kMendFirst};
  if (*report.atomic) return {"scripts", Grade::ok, "the server runs one script at a time"};
  return {"scripts", Grade::fail,
          "the server runs scripts concurrently: two runs could hold the same lock",
          "configure it to run one script at a time (Garnet: --lua-transaction-mode; Dragonfly: "
          "without disable-atomicity), or use another server"};
}

Check waiting(const ServerReport& report) {
  if (!report.blocking_error) return {"waiting", Grade::ok, "waiters can block on the server"};
  if (report.blocking_error->kind == ErrorKind::denied)
    return {"waiting", Grade::warn, "not tested", kMendFirst};
  return {"waiting", Grade::warn,
          report.blocking_error->text + ": each waiter polls about once a second instead",
          "allow BLPOP, or connect without the proxy in front of the server"};
}

// Nothing if the URL names no database, or if the server keeps its databases apart.
std::optional<Check> databases(const ServerReport& report) {
  if (!report.single_database) return std::nullopt;
  const std::string db = "/" + std::to_string(report.server.db);
  return Check{
      "databases", Grade::warn,
      util::format("SELECT has no effect: a URL with {} leads to the same keys as one without it",
                   db),
      util::format("remove {} from the URL, and use --prefix to keep locks apart", db)};
}

Check role(const ServerReport& report) {
  const std::string role = report.info_field("role");
  if (report.info_field("redis_mode") == "sentinel") {
    return {"role", Grade::fail, "a Sentinel, not a server that stores data",
            "use redis+sentinel://HOST/MASTER"};
  }
  if (role.empty()) return {"role", Grade::warn, "unknown", kAllowInfo};
  if (role == "master") return {"role", Grade::ok, "master"};
  if (role == "active-replica") {
    return {"role", Grade::fail,
            "an active replica: two masters accept writes, and after a split one loses its writes",
            "use a separate server for locks, without active-replica"};
  }
  return {"role", Grade::fail, "a replica: it rejects writes, or loses them",
          "use the address of the master, or a redis+sentinel:// URL, which looks it up"};
}

// `2s behind`, `2s ahead of`: a clock compared with another.
std::string ahead_of(Millis ahead) {
  return ahead < Millis(0) ? util::format_duration(-ahead) + " behind"
                           : util::format_duration(ahead) + " ahead of";
}

// With --replicas.
Check replicas(const ServerReport& report) {
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
  const uint64_t needed = report.replicas_needed + 1;
  if (report.replicas.size() < needed) {
    return {"replicas", Grade::fail, text,
            util::format("--replicas {} needs {} replicas: with fewer the new master after a "
                         "fail-over has too few to confirm anything, and rlock ends all commands",
                         report.replicas_needed, needed)};
  }
  if (!far.empty()) {
    return {"replicas", Grade::fail, text + "; the clock of " + far,
            "synchronise the clocks with NTP: a replica that becomes master ends leases by its own "
            "clock"};
  }
  if (!silent.empty()) {
    return {"replicas", Grade::warn, text + "; the clock of " + silent + " is unknown",
            "let rlock doctor reach the replicas, and allow this user to run TIME there (+time)"};
  }
  if (!report.info_field("min_slaves_good_slaves").empty()) {
    return {"replicas", Grade::warn, text + "; min-replicas-to-write is set",
            "with --replicas it is not needed, and it refuses releases, too, while a replica is "
            "away"};
  }
  return {"replicas", Grade::ok, text};
}

// All keys of a lock expire, so the volatile policies evict them, too.
Check eviction(const ServerReport& report) {
  const std::string policy = report.info_field("maxmemory_policy");
  if (policy.empty()) return {"eviction", Grade::warn, "unknown", kAllowInfo};
  if (policy == "noeviction") return {"eviction", Grade::ok, policy};
  const std::string limit = report.info_field("maxmemory");
  const bool limited = !limit.empty() && limit != "0";
  return {"eviction", limited ? Grade::fail : Grade::warn,
          policy + (limited ? ": when memory runs short, the server deletes locks that are held"
                            : ": with maxmemory set, the server would delete locks that are held"),
          config_set(report, {"maxmemory-policy noeviction"})};
}

Check persistence(const ServerReport& report) {
  const std::string advice = config_set(report, {"appendonly yes", "appendfsync always"});
  const std::string aof = report.info_field("aof_enabled");
  if (aof.empty() && !report.info_field("dragonfly_version").empty()) {
    return {"persistence", Grade::warn,
            "snapshots only: a restart loses the locks acquired since the last snapshot",
            "use a server with an append-only file if a restart must not free locks"};
  }
  if (aof.empty()) return {"persistence", Grade::warn, "unknown", kAllowInfo};
  if (aof != "1") {
    bool snapshots = report.save && !report.save->empty();
    return {"persistence", Grade::warn,
            snapshots ? "snapshots only: a restart loses the locks acquired since the last snapshot"
                      : "none: a restart loses every lock",
            advice};
  }
  if (!report.fsync)
    return {"persistence", Grade::warn, "append-only file, fsync policy unknown", kAllowInfo};
  if (*report.fsync == "always")
    return {"persistence", Grade::ok, "append-only file, fsync always"};
  return {"persistence", Grade::warn,
          util::format("append-only file, fsync {}: if its host crashes, the latest locks are lost",
                       *report.fsync),
          advice};
}

Check clock(const ServerReport& report) {
  constexpr Millis kFar{1'000};
  if (!report.clock_ahead)
    return {"clock", Grade::warn, "unknown", "allow this user to run TIME (+time)"};
  const std::string text = ahead_of(*report.clock_ahead) + " this host";
  if (std::chrono::abs(*report.clock_ahead) <= kFar) return {"clock", Grade::ok, text};
  return {"clock", Grade::warn, text,
          "synchronise both clocks with NTP: leases do not depend on them, but the times in "
          "messages do, and so does the order of tokens after a loss of data"};
}

Check round_trip(const ServerReport& report) {
  constexpr Millis kSlow{50};
  auto took = std::chrono::duration<double, std::milli>(report.round_trip.value_or(Nanos(0)));
  const std::string text = util::format("{:.2f} ms", took.count());
  if (took <= kSlow) return {"round trip", Grade::ok, text};
  return {"round trip", Grade::warn, text,
          "each run waits for two round trips; use a server that is nearer"};
}

bool is_local(const redis::Server& server) {
  return server.is_unix() || server.host == "localhost" || server.host == "::1" ||
         server.host.starts_with("127.");
}

Check encryption(const ServerReport& report) {
  const redis::Server& server = report.server;
  if (server.tls != nullptr) {
    if (server.tls->options().verify == redis::Verify::nothing) {
      return {"tls", Grade::warn,
              "the certificate is not verified: anyone could impersonate the server",
              "use --cacert FILE instead of --insecure"};
    }
    if (!report.certificate_end) return {"tls", Grade::ok, "the certificate was verified"};
    constexpr std::chrono::days kSoon{14};
    const auto end = *report.certificate_end;
    const auto left = end - std::chrono::system_clock::now();
    const auto ms = std::chrono::duration_cast<Millis>(end.time_since_epoch());
    const std::string date = rfc3339(lock::ServerTime{ms.count()}).substr(0, 10);
    if (left >= kSoon) {
      return {"tls", Grade::ok, "the certificate was verified; it is valid until " + date};
    }
    return {"tls", Grade::warn,
            util::format("the certificate expires on {}, in {}", date,
                         util::format_duration(std::chrono::floor<std::chrono::hours>(left))),
            "renew the server's certificate: when it has expired, rlock does not connect"};
  }
  if (is_local(server))
    return {"tls", Grade::ok, "not needed: the connection does not leave this machine"};
  return {"tls", Grade::warn,
          "none: the password and the command lines cross the network in plain text",
          "use rediss:// (TLS), or a private network"};
}

std::string count_of(size_t some, size_t all) {
  return util::format("{} of {}", some, all);
}

Check sentinels(const GroupReport& report) {
  size_t answer = 0;
  std::string errors;
  bool denied = false;
  for (const SentinelReport& one : report.sentinels) {
    if (!one.error) {
      ++answer;
      continue;
    }
    errors += "; " + one.error->text;
    denied = denied || one.error->kind == ErrorKind::denied;
  }
  const std::string text = count_of(answer, report.sentinels.size()) + " answer" + errors;
  if (answer == report.sentinels.size()) return {"sentinels", Grade::ok, text};
  return {"sentinels", answer == 0 ? Grade::fail : Grade::warn, text,
          denied ? "check sentinel_username and sentinel_password; this user needs " +
                       std::string(redis::kSentinelAcl)
                 : "check these sentinels, and the name of the master in the URL"};
}

Check agreement(const GroupReport& report) {
  std::string named;
  bool unanimous = true;
  const std::string* first = nullptr;
  for (const SentinelReport& one : report.sentinels) {
    if (one.error) continue;
    if (first == nullptr) first = &one.master;
    unanimous = unanimous && one.master == *first;
    named +=
        util::format("{}{} names {}", named.empty() ? "" : ", ", one.server.label(), one.master);
  }
  if (!report.master) {
    return {"master", Grade::fail,
            named.empty() ? "no sentinel names a master" : "no majority: " + named,
            "runs wait until a majority of the sentinels in the URL name the same master"};
  }
  if (unanimous) return {"master", Grade::ok, report.master->label() + " (all sentinels agree)"};
  return {"master", Grade::warn, named, "a failover is under way, or a sentinel is cut off"};
}

Check failover(const GroupReport& report) {
  for (const SentinelReport& one : report.sentinels) {
    if (!one.no_quorum) continue;
    const bool denied = one.no_quorum->kind == ErrorKind::denied;
    return {"failover", Grade::warn, one.no_quorum->text,
            denied ? "allow this user to run SENTINEL CKQUORUM (+sentinel|ckquorum)"
                   : "if the master fails now, no replica will take its place"};
  }
  return {"failover", Grade::ok, "there are enough sentinels for a failover"};
}

Check state(const ClusterReport& report) {
  if (report.state == "ok") return {"cluster", Grade::ok, "the state of the cluster is ok"};
  return {"cluster", Grade::fail,
          "the state of the cluster is " + (report.state.empty() ? "unknown" : report.state),
          "redis-cli --cluster check HOST:PORT"};
}

Check slots(const ClusterReport& report) {
  const std::string text = count_of(report.slots_served, redis::kSlots) + " slots are served";
  if (report.slots_served == redis::kSlots) return {"slots", Grade::ok, text};
  return {"slots", Grade::fail, text,
          "locks in the other slots cannot be acquired: redis-cli --cluster fix HOST:PORT"};
}

// Whether several URLs lead to as many different servers.
Check independence_check(const std::vector<ServerReport>& reports) {
  std::map<std::string, std::string> seen;
  for (const ServerReport& report : reports) {
    const std::string id = report.info_field("run_id");
    if (id.empty()) continue;
    auto [before, fresh] = seen.emplace(id, report.server.label());
    if (fresh) continue;
    return {"independence", Grade::fail,
            util::format("{} and {} are the same server", before->second, report.server.label()),
            "a quorum needs different servers: give each URL its own server"};
  }
  if (seen.size() == reports.size())
    return {"independence", Grade::ok, "all servers are different"};
  const bool some_silent =
      std::any_of(reports.begin(), reports.end(),
                  [](const ServerReport& report) { return report.contact_error.has_value(); });
  if (some_silent) {
    return {"independence", Grade::warn, "some servers did not answer: rlock cannot compare them",
            "run doctor again when every server answers"};
  }
  return {"independence", Grade::warn, "some servers do not report their identity (run_id)",
          kAllowInfo};
}

Diagnosis diagnosis_of(const GroupReport& report) {
  Diagnosis diagnosis{report.label, {sentinels(report), agreement(report)}};
  if (report.master) diagnosis.checks.push_back(failover(report));
  return diagnosis;
}

Diagnosis diagnosis_of(const ClusterReport& report) {
  if (report.error) {
    const bool denied = report.error->kind == ErrorKind::denied;
    return {
        report.label,
        {{"cluster", Grade::fail, report.error->text,
          denied ? "check the user and the password, and allow this user to run CLUSTER INFO and "
                   "CLUSTER NODES (+cluster|info +cluster|nodes)"
                 : "check the URL, and that its servers are nodes of a cluster"}}};
  }
  return {report.label, {state(report), slots(report)}};
}

constexpr int kFailed = 1;

using Json = nlohmann::ordered_json;

std::string_view grade_text(Grade grade) {
  return util::to_string<Grade::fail>(grade, {"ok", "warn", "fail"});
}

Json check_json(const Check& check) {
  return {{"check", check.name},
          {"state", grade_text(check.grade)},
          {"detail", check.detail},
          {"advice", check.advice.empty() ? Json() : Json(check.advice)}};
}

std::string check_line(const Check& check) {
  std::string line = util::format("  {:<6}{:<12}  {}\n", grade_text(check.grade), check.name,
                                  util::printable(check.detail));
  if (!check.advice.empty())
    line += util::format("{:22}-> {}\n", "", util::printable(check.advice));
  return line;
}

// Of this host. Never a fault: few runs need it.
Check contain_check() {
  auto contained = run::try_to_contain();
  return {"contain", Grade::ok,
          contained ? "rlock run --contain works on this host" : contained.error().text};
}

std::string text_of(const std::string& url_place, const std::vector<Diagnosis>& servers,
                    const std::optional<Check>& independence, const Check& contain) {
  std::string text = "the URL comes from " + util::printable(url_place) + "\n";
  for (const Diagnosis& server : servers) {
    text += util::printable(server.server) + "\n";
    for (const Check& check : server.checks) text += check_line(check);
  }
  if (independence) text += "all servers\n" + check_line(*independence);
  text += "this host\n" + check_line(contain);
  return text;
}

std::string doctor_json(const std::string& url_place, const std::vector<Diagnosis>& servers,
                        const std::optional<Check>& independence, const Check& contain,
                        const std::string& acl_rule) {
  Json list = Json::array();
  for (const Diagnosis& server : servers) {
    Json checks = Json::array();
    for (const Check& check : server.checks) checks.push_back(check_json(check));
    list.push_back({{"server", server.server}, {"checks", std::move(checks)}});
  }
  Json whole{{"schema", 1}, {"url_place", url_place}, {"servers", std::move(list)}};
  whole["independence"] = independence ? check_json(*independence) : Json();
  whole["contain"] = check_json(contain);
  whole["acl_rule"] = acl_rule;
  return whole.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

bool failed(const std::vector<Diagnosis>& servers, const std::optional<Check>& independence,
            const Choices& choices) {
  const bool strict = choices.has(Opt::strict);
  auto is_bad = [strict](const Check& check) {
    return check.grade == Grade::fail || (strict && check.grade == Grade::warn);
  };
  return (independence && is_bad(*independence)) ||
         std::any_of(servers.begin(), servers.end(), [&](const Diagnosis& server) {
           return std::any_of(server.checks.begin(), server.checks.end(), is_bad);
         });
}

// Examines each target of the URLs and checks what it finds there.
class Doctor {
 public:
  explicit Doctor(const redis::OpenOptions& options) : options_(options) {}

  void operator()(const redis::Server& server) {
    const bool quorum = options_.urls.size() > 1;
    check_server(server, quorum ? ServerKind::quorum_member : ServerKind::single);
    const redis::Url& url = options_.urls[reports_.size() - 1];
    if (std::holds_alternative<redis::LocalUrl>(url)) {
      diagnoses_.back().checks.push_back(
          {"local", Grade::ok,
           "rlock started this server and keeps it for the next run; rlock local stop ends it"});
    }
  }

  void operator()(const redis::SentinelGroup& group) {
    const GroupReport report = redis::examine_group(group);
    diagnoses_.push_back(diagnosis_of(report));
    kind_ = ServerKind::sentinel_master;
    if (report.master) check_server(*report.master, kind_);
  }

  void operator()(const redis::ClusterSeeds& cluster) {
    const ClusterReport report = redis::examine_cluster(cluster);
    diagnoses_.push_back(diagnosis_of(report));
    kind_ = ServerKind::cluster_node;
    for (const redis::Server& master : report.masters) check_server(master, kind_);
  }

  const std::vector<Diagnosis>& diagnoses() const { return diagnoses_; }
  std::string acl_rule() const {
    return redis::least_acl(options_.prefix, kind_, options_.replicas);
  }
  std::optional<Check> independence() const {
    if (options_.urls.size() == 1) return std::nullopt;
    return independence_check(reports_);
  }

 private:
  void check_server(const redis::Server& server, ServerKind kind) {
    kind_ = kind;
    reports_.push_back(redis::examine_server(server, options_.prefix, kind, options_.replicas));
    diagnoses_.push_back(diagnose(reports_.back(), options_.prefix, kind));
  }

  const redis::OpenOptions& options_;
  ServerKind kind_ = ServerKind::single;
  std::vector<ServerReport> reports_;
  std::vector<Diagnosis> diagnoses_;
};

}  // namespace

Diagnosis diagnose(const ServerReport& report, const std::string& prefix, ServerKind kind) {
  const std::string remedy = acl_remedy(report, prefix, kind);
  Diagnosis diagnosis{report.server.label(), {reachable(report, remedy)}};
  if (report.contact_error) return diagnosis;
  for (Check& check :
       std::array{version(report), commands(report, prefix, remedy), scripts(report),
                  waiting(report), role(report), eviction(report), persistence(report),
                  clock(report), round_trip(report), encryption(report)}) {
    diagnosis.checks.push_back(std::move(check));
  }
  if (report.replicas_needed > 0) diagnosis.checks.push_back(replicas(report));
  if (auto check = databases(report)) diagnosis.checks.push_back(*std::move(check));
  return diagnosis;
}

Result<int> doctor_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  if (!invocation.names.empty() || invocation.after_dashes) {
    return usage("doctor takes no NAME: it checks the server");
  }
  TRY(auto options, connection_options(choices, system_getenv));
  // Fails if a private server cannot be started.
  TRY(auto targets, redis::targets(options));
  Doctor doctor(options);
  for (const redis::ServerTarget& target : targets) std::visit(doctor, target);
  const std::vector<Diagnosis>& servers = doctor.diagnoses();
  const std::optional<Check> independence = doctor.independence();
  const int code = failed(servers, independence, choices) ? kFailed : 0;
  if (choices.has(Opt::quiet)) return print_result({}, code);
  const std::string url_place = effective_setting(Opt::url, choices, system_getenv).place;
  const Check contain = contain_check();
  return print_result(choices.has(Opt::json) ? doctor_json(url_place, servers, independence,
                                                           contain, doctor.acl_rule())
                                             : text_of(url_place, servers, independence, contain),
                      code);
}

}  // namespace rlock::cli
