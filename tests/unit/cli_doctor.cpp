#include <doctest/doctest.h>

#include "cli/doctor_checks.hpp"
#include "redis/acl.hpp"

using namespace rlock;
using cli::Check;
using cli::Grade;
using redis::Survey;
using util::Millis;

namespace {

// All is well there.
Survey fit() {
  Survey survey;
  survey.server.host = "127.0.0.1";
  survey.round_trip = Millis(1);
  survey.clock_ahead = Millis(3);
  survey.info = {
      {"redis_version", "7.0.15"}, {"role", "master"},   {"maxmemory_policy", "noeviction"},
      {"aof_enabled", "1"},        {"run_id", "aaaaaa"}, {"redis_mode", "standalone"}};
  survey.fsync = "always";
  survey.save = "";
  survey.atomic = true;
  return survey;
}

Check check(const Survey& survey, const std::string& name) {
  for (const Check& each : cli::diagnose(survey, "rlock:").checks) {
    if (each.name == name) return each;
  }
  FAIL("no check " << name);
  return {};
}

// What is found, and that whatever is not well comes with what to do.
Grade grade(const Survey& survey, const std::string& name) {
  Check found = check(survey, name);
  CHECK((found.grade == Grade::ok) == found.advice.empty());
  return found.grade;
}

Survey with(const char* field, const char* value) {
  Survey survey = fit();
  survey.info[field] = value;
  return survey;
}

}  // namespace

TEST_CASE("a fit server is ok in every point") {
  for (const Check& each : cli::diagnose(fit(), "rlock:").checks) {
    CAPTURE(each.name);
    CHECK(each.grade == Grade::ok);
    CHECK(each.advice.empty());
  }
}

TEST_CASE("versions: Redis from 6.2, Valkey from 7.2 by its own number") {
  for (const char* old : {"2.8.24", "5.0.14", "6.0.16", "6.1.240"}) {
    CHECK(grade(with("redis_version", old), "version") == Grade::fail);
  }
  for (const char* fit_one : {"6.2.20", "6.10.1", "7.0.15", "8.0.4", "10.0.0"}) {
    CHECK(grade(with("redis_version", fit_one), "version") == Grade::ok);
  }
  Survey valkey = with("redis_version", "7.2.4");
  valkey.info["valkey_version"] = "8.0.6";
  CHECK(check(valkey, "version").detail == "Valkey 8.0.6");
  valkey.info["valkey_version"] = "7.1.0";
  CHECK(grade(valkey, "version") == Grade::fail);
}

TEST_CASE("a replica and a Sentinel hold no locks") {
  CHECK(grade(with("role", "slave"), "role") == Grade::fail);
  CHECK(grade(with("redis_mode", "sentinel"), "role") == Grade::fail);
}

TEST_CASE("L45 every eviction policy but noeviction is warned of") {
  for (const char* policy : {"allkeys-lru", "volatile-ttl", "allkeys-random"}) {
    CHECK(grade(with("maxmemory_policy", policy), "eviction") == Grade::warn);
  }
}

TEST_CASE("what a restart forgets is told") {
  Survey survey = with("aof_enabled", "0");
  CHECK(grade(survey, "persistence") == Grade::warn);
  survey.save = "3600 1";
  CHECK(check(survey, "persistence").detail.find("snapshots") != std::string::npos);
  survey = fit();
  survey.fsync = "everysec";
  CHECK(grade(survey, "persistence") == Grade::warn);
}

TEST_CASE("clocks apart and long ways are warned of") {
  Survey survey = fit();
  for (Millis ahead : {Millis(1'001), Millis(-90'000)}) {
    survey.clock_ahead = ahead;
    CHECK(grade(survey, "clock") == Grade::warn);
  }
  CHECK(check(survey, "clock").detail == "1m30s behind this host");
  survey.round_trip = Millis(51);
  CHECK(grade(survey, "round trip") == Grade::warn);
}

TEST_CASE("without TLS only what stays on this machine is ok") {
  Survey survey = fit();
  survey.server.host = "db1";
  CHECK(grade(survey, "tls") == Grade::warn);
  survey.server.transport = redis::Transport::unix_socket;
  CHECK(grade(survey, "tls") == Grade::ok);
}

TEST_CASE("a denied command is named, with the rule that works; other trouble is told") {
  Survey survey = fit();
  survey.denied = {"ZADD", "BLPOP"};
  Check found = check(survey, "commands");
  CHECK(found.grade == Grade::fail);
  CHECK(found.detail.find("ZADD, BLPOP") != std::string::npos);
  CHECK(found.advice.find(redis::least_acl("rlock:")) != std::string::npos);
  CHECK(redis::least_acl("mine:").find("~mine:* ") == 0);
  survey = fit();
  survey.trouble = util::Error{util::ErrorKind::unavailable, "OOM"};
  CHECK(grade(survey, "commands") == Grade::fail);
}

TEST_CASE("what a server does not tell is a warning, never a guess") {
  Survey silent = fit();
  silent.info.clear();
  silent.clock_ahead.reset();
  for (const char* name : {"version", "role", "eviction", "persistence", "clock"}) {
    CHECK(grade(silent, name) == Grade::warn);
  }
  Survey half = fit();
  half.fsync.reset();
  CHECK(grade(half, "persistence") == Grade::warn);
}

TEST_CASE("one server under two names is no quorum") {
  Survey other = with("run_id", "bbbbbb");
  CHECK(cli::independence_check({fit(), other}).grade == Grade::ok);
  CHECK(cli::independence_check({fit(), other, fit()}).grade == Grade::fail);
  other.info.clear();
  CHECK(cli::independence_check({fit(), other}).grade == Grade::warn);
}

TEST_CASE("servers that are not Redis get the reason that is theirs") {
  CHECK(check(with("dragonfly_version", "df-v1.40.0"), "version").detail == "Dragonfly df-v1.40.0");
  Survey dragonfly = with("dragonfly_version", "df-v1.40.0");
  dragonfly.info.erase("aof_enabled");
  CHECK(check(dragonfly, "persistence").detail.starts_with("snapshots alone"));
  CHECK(check(with("garnet_version", "1.0.84"), "version").detail == "Garnet 1.0.84");
  CHECK(check(with("role", "active-replica"), "role").detail.starts_with("an active replica"));
  CHECK(grade(with("role", "active-replica"), "role") == Grade::fail);
}

TEST_CASE(
    "scripts that run side by side are no ground for locks; one that cannot wait is a warning") {
  Survey garnet = fit();
  garnet.atomic = false;
  CHECK(grade(garnet, "scripts") == Grade::fail);
  Survey proxy = fit();
  proxy.no_wait = util::Error{util::ErrorKind::config, "it does not know the command blpop"};
  CHECK(grade(proxy, "waiting") == Grade::warn);
  Survey renamed = fit();
  renamed.lacking = {"ZADD"};
  CHECK(grade(renamed, "commands") == Grade::fail);
  CHECK(check(renamed, "commands").detail.find("ZADD") != std::string::npos);
}

TEST_CASE("an eviction policy that has a limit to act on deletes locks that are held") {
  for (const char* policy : {"allkeys-lru", "volatile-ttl"}) {
    Survey survey = with("maxmemory_policy", policy);
    CHECK(grade(survey, "eviction") == Grade::warn);
    survey.info["maxmemory"] = "1048576";
    CHECK(grade(survey, "eviction") == Grade::fail);
    CHECK(check(survey, "eviction").advice ==
          "redis-cli -h 127.0.0.1 -p 6379 CONFIG SET maxmemory-policy noeviction");
  }
}

TEST_CASE("releases with a hole in their scripts are a warning") {
  for (const char* old : {"6.2.19", "7.2.10", "7.4.5", "8.0.3", "8.2.1"}) {
    CAPTURE(old);
    CHECK(grade(with("redis_version", old), "version") == Grade::warn);
  }
  for (const char* fixed : {"6.2.20", "7.0.15", "7.2.11", "8.4.0", "9.0.0"}) {
    CAPTURE(fixed);
    CHECK(grade(with("redis_version", fixed), "version") == Grade::ok);
  }
  CHECK(grade(with("valkey_version", "8.1.3"), "version") == Grade::warn);
  CHECK(grade(with("valkey_version", "8.1.4"), "version") == Grade::ok);
}

TEST_CASE("a certificate that is refused is no matter of the password") {
  Survey survey = fit();
  survey.no_contact =
      util::Error{util::ErrorKind::denied, "TLS: its certificate is refused: it is not for h"};
  CHECK(check(survey, "tls").advice.find("--sni") != std::string::npos);
  survey.no_contact->text = "TLS: its certificate is refused: it is self-signed";
  CHECK(check(survey, "tls").advice.find("--cacert") != std::string::npos);
}
