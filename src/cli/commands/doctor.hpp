#pragma once

#include <string>
#include <vector>

#include "redis/doctor.hpp"
#include "redis/store/acl.hpp"

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

// Of one server. `prefix` and `kind` are for the ACL rule.
Diagnosis diagnose(const redis::ServerReport& report, const std::string& prefix,
                   redis::ServerKind kind = redis::ServerKind::single);

}  // namespace rlock::cli
