#pragma once

#include <string>
#include <vector>

#include "redis/doctor/server_report.hpp"
#include "redis/store/acl.hpp"

// What a server's answers mean for locks.
namespace rlock::cli {

enum class Grade { ok, warn, fail };
std::string_view to_string(Grade grade);

struct Check {
  std::string name;
  Grade grade = Grade::ok;
  std::string detail;    // as found; may hold a server's hostile text
  std::string advice{};  // what to do about it; empty where nothing is to be done
};

struct Diagnosis {
  std::string server;
  std::vector<Check> checks;
};

// Of one server. `prefix` and `standing` are for the ACL rule.
Diagnosis diagnose(const redis::ServerReport& report, const std::string& prefix,
                   redis::ServerKind kind = redis::ServerKind::single);

// Of a server of `local:`, which nobody but rlock starts: how it is ended.
Check local_check(const redis::Server& server);

// Whether several URLs lead to as many servers.
Check independence_check(const std::vector<redis::ServerReport>& reports);

}  // namespace rlock::cli
