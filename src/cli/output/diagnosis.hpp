#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/text.hpp"

// What `rlock doctor` shows.
namespace rlock::cli {

// no: something that only runs with a certain option need does not work.
enum class Grade { ok, no, warn, fail };

inline std::string_view to_string(Grade grade) {
  return util::to_string<Grade::fail>(grade, {"ok", "no", "warn", "fail"});
}

struct Check {
  std::string name;
  Grade grade = Grade::ok;
  std::string detail;    // the observation; may contain hostile text from a server
  std::string advice{};  // what to do about it; empty if nothing
};

struct Diagnosis {
  std::string server;
  std::vector<Check> checks;
};

struct DoctorReport {
  // The origins of the settings of the connection.
  std::string url_place{};
  std::optional<std::string> password_place{};  // for the server in the URL; nullopt: no password
  std::vector<std::string> ignored{};           // a sentence for each setting that is not used
  // The servers.
  std::vector<Diagnosis> servers{};
  std::string acl_rule{};
  std::optional<Check> independence{};  // with several servers
  // The locks. Nullopt if a server is not suitable.
  std::optional<Check> versions{};
  std::optional<Check> deadlocks{};  // with one server
  // This host.
  std::optional<Check> password{};  // with a password file
  Check proc{};
  Check contain{};
  Check contain_user{};
};

}  // namespace rlock::cli
