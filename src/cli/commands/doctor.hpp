#pragma once

#include <string>
#include <vector>

#include "redis/doctor.hpp"
#include "redis/store/acl.hpp"

// The checks of `rlock doctor`: whether servers are fit to hold locks.
namespace rlock::cli {

enum class Grade { ok, warn, fail };
std::string_view to_string(Grade grade);

struct Check {
  std::string name;
  Grade grade = Grade::ok;
  std::string detail;    // as found; may hold a server's hostile text
  std::string advice{};  // what to do about it; empty if nothing
};

struct Diagnosis {
  std::string server;
  std::vector<Check> checks;
};

// Of one server. `prefix` and `kind` are for the ACL rule.
Diagnosis diagnose(const redis::ServerReport& report, const std::string& prefix,
                   redis::ServerKind kind = redis::ServerKind::single);

// Of several servers together.
Diagnosis diagnose(const redis::GroupReport& report);
Diagnosis diagnose(const redis::ClusterReport& report);

// How the server of `local:`, which rlock starts itself, is stopped.
Check local_check();

// Whether several URLs lead to as many different servers.
Check independence_check(const std::vector<redis::ServerReport>& reports);

}  // namespace rlock::cli
