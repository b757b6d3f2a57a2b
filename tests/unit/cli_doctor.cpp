#include <doctest/doctest.h>

#include <tuple>

#include "cli/commands/doctor.hpp"

using namespace rlock;
using cli::Check;
using cli::Grade;
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
  for (const Check& each : cli::diagnose(report, "rlock:").checks) {
    if (each.name == name) return each;
  }
  FAIL("no check " << name);
  return {};
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

TEST_CASE("versions: Redis from 6.2, Valkey from 7.2 by its own number") {
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

TEST_CASE("clocks apart and long ways are warned of") {
  ServerReport report = healthy();
  for (Millis ahead : {Millis(1'001), Millis(-90'000)}) {
    report.clock_ahead = ahead;
    CHECK(grade(report, "clock") == Grade::warn);
  }
  CHECK(check(report, "clock").detail == "1m30s behind this host");
  report.round_trip = Millis(51);
  CHECK(grade(report, "round trip") == Grade::warn);
}

TEST_CASE("without TLS only what stays on this machine is ok") {
  ServerReport report = healthy();
  report.server.host = "db1";
  CHECK(grade(report, "tls") == Grade::warn);
  report.server.path = "/run/redis.sock";
  CHECK(grade(report, "tls") == Grade::ok);
}

TEST_CASE("what a server does not report is a warning, never a guess") {
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

TEST_CASE("a refused certificate is not reported as a wrong password") {
  ServerReport report = healthy();
  report.contact_error =
      Error{ErrorKind::denied, "TLS: the server's certificate was rejected: it is not for h"};
  CHECK(check(report, "tls").advice.find("--sni") != std::string::npos);
  report.contact_error->text = "TLS: the server's certificate was rejected: it is self-signed";
  CHECK(check(report, "tls").advice.find("--cacert") != std::string::npos);
}
