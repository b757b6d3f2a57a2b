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
  for (const char* fit_one : {"6.2.0", "6.10.1", "7.0.15", "8.0.2", "10.0.0"}) {
    CHECK(grade(with("redis_version", fit_one), "version") == Grade::ok);
  }
  Survey valkey = with("redis_version", "7.2.4");
  valkey.info["valkey_version"] = "8.0.1";
  CHECK(check(valkey, "version").detail == "Valkey 8.0.1");
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
