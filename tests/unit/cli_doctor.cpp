#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "cli/commands/doctor.hpp"
#include "util/duration.hpp"

using namespace rlock;
using cli::Check;
using cli::Grade;
using cli::outage;
using redis::ServerReport;

namespace {

// A server without any fault.
ServerReport healthy() {
  ServerReport report;
  report.server.host = "127.0.0.1";
  report.round_trip = Millis(1);
  report.clock_ahead = Millis(3);
  report.info = {
      {"redis_version", "7.0.15"}, {"role", "master"},   {"maxmemory_policy", "noeviction"},
      {"aof_enabled", "1"},        {"run_id", "aaaaaa"}, {"redis_mode", "standalone"}};
  report.fsync = "always";
  report.save = "";
  report.atomic = true;
  return report;
}

Check check(const ServerReport& report, const std::string& name) {
  for (const Check& each : cli::diagnose(report).checks) {
    if (each.name == name) return each;
  }
  FAIL("no check " << name);
  return {};
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != text.npos;
}

// The grade; every check that is not ok comes with advice.
Grade grade(const ServerReport& report, const std::string& name) {
  Check found = check(report, name);
  CHECK((found.grade == Grade::ok) == found.advice.empty());
  return found.grade;
}

ServerReport with(const char* field, const char* value) {
  ServerReport report = healthy();
  report.info[field] = value;
  return report;
}

}  // namespace

TEST_CASE("doctor passes Redis from 6.2, and Valkey from 7.2 by its own number") {
  for (const char* old : {"2.8.24", "5.0.14", "6.0.16", "6.1.240"}) {
    CHECK(grade(with("redis_version", old), "version") == Grade::fail);
  }
  for (const char* supported : {"6.2.20", "6.10.1", "7.0.15", "8.0.4", "10.0.0"}) {
    CHECK(grade(with("redis_version", supported), "version") == Grade::ok);
  }
  ServerReport valkey = with("redis_version", "7.2.4");
  valkey.info["valkey_version"] = "8.0.6";
  CHECK(check(valkey, "version").detail == "Valkey 8.0.6");
  valkey.info["valkey_version"] = "7.1.0";
  CHECK(grade(valkey, "version") == Grade::fail);
}

TEST_CASE("different clocks and long round trips cause a warning") {
  ServerReport report = healthy();
  for (Millis ahead : {Millis(1'001), Millis(-90'000)}) {
    report.clock_ahead = ahead;
    CHECK(grade(report, "clock") == Grade::warn);
  }
  CHECK(check(report, "clock").detail == "1m30s behind this host");
  report.round_trip = Millis(51);
  CHECK(grade(report, "round trip") == Grade::warn);
}

TEST_CASE("without TLS only a connection within this machine is ok") {
  ServerReport report = healthy();
  report.server.host = "db1";
  CHECK(grade(report, "tls") == Grade::warn);
  report.server.path = "/run/redis.sock";
  CHECK(grade(report, "tls") == Grade::ok);
}

TEST_CASE("a fact that the server does not report is a warning, never a guess") {
  ServerReport silent = healthy();
  silent.info.clear();
  silent.clock_ahead.reset();
  for (const char* name : {"version", "role", "eviction", "persistence", "clock"}) {
    CHECK(grade(silent, name) == Grade::warn);
  }
  ServerReport half = healthy();
  half.fsync.reset();
  CHECK(grade(half, "persistence") == Grade::warn);
}

TEST_CASE("servers that are not Redis fail with a reason of their own") {
  CHECK(check(with("dragonfly_version", "df-v1.40.0"), "version").detail == "Dragonfly df-v1.40.0");
  ServerReport dragonfly = with("dragonfly_version", "df-v1.40.0");
  dragonfly.info.erase("aof_enabled");
  CHECK(check(dragonfly, "persistence").detail.starts_with("snapshots only"));
  CHECK(check(with("garnet_version", "1.0.84"), "version").detail == "Garnet 1.0.84");
  CHECK(check(with("role", "active-replica"), "role").detail.starts_with("an active replica"));
  CHECK(grade(with("role", "active-replica"), "role") == Grade::fail);
}

TEST_CASE("an eviction policy that has a limit to act on deletes locks that are held") {
  for (const char* policy : {"allkeys-lru", "volatile-ttl"}) {
    ServerReport report = with("maxmemory_policy", policy);
    CHECK(grade(report, "eviction") == Grade::warn);
    report.info["maxmemory"] = "1048576";
    CHECK(grade(report, "eviction") == Grade::fail);
    const std::string cli = "redis-cli -h 127.0.0.1 -p 6379 ";
    CHECK(check(report, "eviction").advice ==
          cli + "CONFIG SET maxmemory-policy noeviction && " + cli + "CONFIG REWRITE");
  }
}

TEST_CASE("server releases with a vulnerability in scripting are a warning") {
  for (const char* old : {"6.2.19", "7.2.10", "7.4.5", "8.0.3", "8.2.1"}) {
    CAPTURE(old);
    CHECK(grade(with("redis_version", old), "version") == Grade::warn);
  }
  for (const char* fixed : {"6.2.20", "7.0.15", "7.2.11", "8.4.0", "9.0.0"}) {
    CAPTURE(fixed);
    CHECK(grade(with("redis_version", fixed), "version") == Grade::ok);
  }
  CHECK(grade(with("valkey_version", "8.1.3"), "version") == Grade::warn);
  // Debian's update of Redis 8.0.2 keeps the version.
  for (const auto& [field, text, package] :
       {std::tuple("redis_version", "8.0.2", "redis-server"),
        std::tuple("valkey_version", "8.1.3", "valkey-server")}) {
    const std::string advice = check(with(field, text), "version").advice;
    CHECK(advice.find(std::string("(apt changelog ") + package + ")") != advice.npos);
  }
  CHECK(grade(with("valkey_version", "8.1.4"), "version") == Grade::ok);
}

TEST_CASE("a remedy follows from the cause of an error, whatever its text says") {
  ServerReport report = healthy();
  auto advice = [&](Cause cause, const std::string& name) {
    Error error{ErrorKind::denied, "no word of the text matters"};
    error.cause = cause;
    report.contact_error = error;
    return check(report, name).advice;
  };
  CHECK(contains(advice(Cause::certificate_name, "tls"), "--sni"));
  CHECK(contains(advice(Cause::certificate_authority, "tls"), "--cacert"));
  CHECK(contains(advice(Cause::tls, "tls"), "--cert"));
  CHECK(contains(advice(Cause::select_denied, "access"), "ACL SETUSER"));
  CHECK(contains(advice(Cause::other, "access"), "check the user, the password"));
  report.contact_error->kind = ErrorKind::unavailable;
  CHECK(contains(check(report, "reachable").advice, "check the URL"));
  report.contact_error->cause = Cause::too_many_clients;
  CHECK(contains(check(report, "reachable").advice, "maxclients"));

  ServerReport full = healthy();
  full.error = Error{ErrorKind::unavailable, "no word of the text matters"};
  full.error->cause = Cause::out_of_memory;
  CHECK(contains(check(full, "commands").advice, "maxmemory"));
}

TEST_CASE("a test that could not be carried out says why") {
  ServerReport report = healthy();
  report.atomic.reset();
  report.atomic_error = Error{ErrorKind::unavailable, "db1: it has too many clients"};
  report.atomic_error->cause = Cause::too_many_clients;
  CHECK(grade(report, "scripts") == Grade::warn);
  CHECK(contains(check(report, "scripts").detail, "db1: it has too many clients"));
  CHECK(contains(check(report, "scripts").advice, "maxclients"));
}

TEST_CASE("a check whose command failed is not tested, and says which command and why") {
  const std::tuple<const char*, const char*, const char*> kNeeds[] = {
      {"version", "INFO", "(+info)"},  {"role", "INFO", "(+info)"},
      {"eviction", "INFO", "(+info)"}, {"persistence", "CONFIG GET", "(+config|get)"},
      {"clock", "TIME", "(+time)"},    {"moving slots", "CLUSTER NODES", "(+cluster|nodes)"},
      {"replicas", "INFO", "(+info)"}};
  for (const auto& [name, command, word] : kNeeds) {
    CAPTURE(name);
    ServerReport report = healthy();
    report.use.kind = redis::ServerKind::cluster_node;
    if (std::string_view(command) == "INFO") report.info.clear();
    report.fsync.reset();
    report.clock_ahead.reset();
    report.failures[command] = Error{ErrorKind::denied, "no word of the text matters"};
    CHECK(grade(report, name) == Grade::warn);
    CHECK(contains(check(report, name).detail,
                   ("not tested: this user may not run " + std::string(command)).c_str()));
    CHECK(contains(check(report, name).advice, word));
    report.failures[command] = Error{ErrorKind::config, "no word of the text matters", Retry::never,
                                     Answered::no, Cause::missing_command};
    CHECK(contains(check(report, name).detail,
                   ("not tested: there is no command " + std::string(command)).c_str()));
    CHECK(contains(check(report, name).advice, "rename-command"));
  }
  ServerReport confirming = healthy();
  confirming.use.replicas = 1;
  for (const char* command : {"ROLE", "WAIT"}) {
    confirming.failures = {{command, Error{ErrorKind::denied, "no word of the text matters"}}};
    CHECK(grade(confirming, "replicas") == Grade::warn);
    CHECK(contains(check(confirming, "replicas").detail, command));
  }
  ServerReport waiting = healthy();
  waiting.blocking_error = Error{ErrorKind::denied, "no word of the text matters"};
  CHECK(check(waiting, "waiting").detail == "not tested: this user may not run BLPOP");
  ServerReport member = healthy();
  member.use.kind = redis::ServerKind::quorum_member;
  member.membership_error = Error{ErrorKind::unavailable, "db1: timed out"};
  CHECK(check(member, "counted").detail == "not tested: db1: timed out");
}

TEST_CASE("sentinels that do not say which others exist are a warning") {
  redis::GroupReport report{"db1:26379/main", "main"};
  report.sentinels = {{}, {}};
  report.sentinels[0].server.user = "rl";
  report.existing = 2;
  auto counting = [&] {
    for (const Check& each : cli::diagnose(report).checks) {
      if (each.name == "counting") return each;
    }
    return Check{};
  };
  CHECK(counting().grade == Grade::ok);
  for (const char* command : {"SENTINEL MYID", "SENTINEL SENTINELS"}) {
    report.sentinels[0].failures = {{command, Error{ErrorKind::denied, "NOPERM"}}};
    CHECK(counting().grade == Grade::warn);
    CHECK(contains(counting().detail, command));
    CHECK(contains(counting().advice, "ACL SETUSER rl "));
    CHECK(contains(counting().advice, "'+sentinel|sentinels' '+sentinel|myid'"));
  }
  for (auto& one : report.sentinels) one.error = Error{ErrorKind::unavailable, "gone"};
  CHECK(counting().name.empty());
}

TEST_CASE("a member of a quorum that is not counted fails with the time that is left") {
  ServerReport report = with("uptime_in_seconds", "18");
  report.use.kind = redis::ServerKind::quorum_member;
  CHECK(grade(report, "counted") == Grade::ok);
  report.membership_error = Error{ErrorKind::unavailable, "not counted"};
  report.membership_error->cause = Cause::not_counted;
  CHECK(grade(report, "counted") == Grade::fail);
  CHECK(contains(check(report, "counted").detail, "for another 42s"));
  report.info.erase("uptime_in_seconds");
  CHECK(contains(check(report, "counted").advice, "INFO"));
}

TEST_CASE("slots that are moving are a warning, and the remedy names the node") {
  ServerReport report = healthy();
  report.use.kind = redis::ServerKind::cluster_node;
  report.info["connected_slaves"] = "1";
  report.info["slave0"] = "ip=10.0.0.2,port=6379,state=online,offset=1,lag=0";
  CHECK(grade(report, "moving slots") == Grade::ok);
  CHECK(grade(report, "replicas") == Grade::ok);
  report.moving_slots = {"93 to another node", "7 from another node"};
  CHECK(grade(report, "moving slots") == Grade::warn);
  CHECK(contains(check(report, "moving slots").detail, "93 to another node, 7 from another node"));
  CHECK(contains(check(report, "moving slots").advice, "--cluster fix 127.0.0.1:6379"));
  report.moving_slots.resize(100, "1 to another node");
  CHECK(contains(check(report, "moving slots").detail, "92 more"));
}

TEST_CASE("if no replica is online to become the master, doctor warns") {
  ServerReport report = with("connected_slaves", "1");
  report.info["slave0"] = "ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0";
  for (auto kind : {redis::ServerKind::sentinel_master, redis::ServerKind::cluster_node}) {
    report.use.kind = kind;
    CHECK(grade(report, "replicas") == Grade::warn);
  }
}

TEST_CASE("replicas that are online and confirm nothing fail") {
  ServerReport report = healthy();
  report.use.replicas = 1;
  report.replicas = {{"db2:6379", Millis(0)}, {"db3:6379", Millis(0)}};
  report.confirmed = 1;
  CHECK(grade(report, "replicas") == Grade::ok);
  report.confirmed = 0;
  CHECK(grade(report, "replicas") == Grade::fail);
}

TEST_CASE("each seed of a cluster that does not answer is reported") {
  redis::ClusterReport report{"db1:6379,db2:6379", 2};
  report.state = "ok";
  report.slots_served = redis::kSlots;
  CHECK(cli::diagnose(report).checks.front().grade == Grade::ok);
  report.seed_errors.push_back({ErrorKind::unavailable, "db2:6379: Connection refused"});
  const Check half = cli::diagnose(report).checks.front();
  CHECK(half.grade == Grade::warn);
  CHECK(half.detail == "1 of 2 answer; db2:6379: Connection refused");
  CHECK(cli::diagnose(report).checks.size() == 3);
  report.seed_errors.push_back({ErrorKind::unavailable, "db1:6379: Connection refused"});
  CHECK(cli::diagnose(report).checks.size() == 1);
  CHECK(cli::diagnose(report).checks.front().grade == Grade::fail);
}

TEST_CASE("a failover that takes longer than the outage which a run survives is a warning") {
  using namespace std::chrono_literals;
  const lock::LeaseMonitor::Settings usual{60s, 5s};
  CHECK(outage(usual, 35s, "down-after-milliseconds 30000").grade == Grade::ok);
  const Check longer = outage(usual, 65s, "down-after-milliseconds 60000");
  CHECK(longer.grade == Grade::warn);
  CHECK(longer.detail ==
        "a failover takes about 1m5s (down-after-milliseconds 60000), and a run with --ttl 1m "
        "survives every outage of up to 40s");
  CHECK(longer.advice.starts_with("use --ttl 1m30s, "));
  const Check endless = outage(usual, Millis(int64_t{1} << 53), "down-after-milliseconds 9e15");
  CHECK(endless.advice == "make the failover quicker: now a failover stops every run");
  // The lease that is advised suffices, and no much longer one is.
  for (Millis takes : {10s, 35s, 65s, 3605s}) {
    for (Millis ttl : {1s, 10s, 30s}) {
      lock::LeaseMonitor::Settings lease{ttl, std::min<Millis>(5s, ttl / 6)};
      const Check found = outage(lease, takes, "cluster-node-timeout 1");
      if (found.grade == Grade::ok) continue;
      std::string advised = found.advice.substr(std::string_view("use --ttl ").size());
      advised.resize(advised.find(','));
      lease.ttl = *util::parse_duration(advised);
      CAPTURE(advised);
      CHECK(lock::survived_outage(lease) >= takes);
      CHECK(lease.ttl <= takes * 5 / 4 + 30s);
    }
  }
}
