#pragma once

#include <string>
#include <vector>

#include "redis/doctor.hpp"

// The checks of `rlock doctor`: whether a server is fit to hold locks.
namespace rlock::cli {

enum class Grade { ok, warn, fail };

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

// Of one server.
Diagnosis diagnose(const redis::ServerReport& report);
// Of a group as a whole.
Diagnosis diagnose(const redis::GroupReport& report);
Diagnosis diagnose(const redis::ClusterReport& report);
// Whether several URLs lead to as many different servers.
Check independence(const std::vector<redis::ServerReport>& reports);

}  // namespace rlock::cli
