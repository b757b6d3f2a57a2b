#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "cli/commands/doctor.hpp"
#include "redis/doctor.hpp"
#include "redis/net/url.hpp"
#include "util/result.hpp"

// Helpers for the checks of servers and of groups.
namespace rlock::cli {

// The advice if another failure prevented the test.
constexpr const char* kFixFirst = "fix what the failed check above reports";
constexpr const char* kUseMaster =
    "use the address of the master, or a redis+sentinel:// URL, which looks it up";

// The results of a check, without its name, which is in its row.
Check graded(Grade grade, std::string detail, std::string advice);
Check ok(std::string detail);
Check warn(std::string detail, std::string advice);
Check fail(std::string detail, std::string advice);
// The result if the server does not report `what`, as Redis does.
Check unreported(const std::string& what);
// The result if the test was not possible, because `command` failed. `at`: ` at db1:26379`, if
// there are several servers.
Check not_tested(const std::string& command, const Error& error, const std::string& at = "");

// Returns null if the command did not fail.
const Error* failure_of(const redis::Failures& failures, std::string_view command);
const char* remedy_for(const Error& error, const char* otherwise);
// Returns the command line that an administrator runs at the server: as the default user, because
// other users rarely have the rights.
std::string admin_cli(redis::Server server, const std::string& words);
// A shell comment with what the user has to know before running a command line; empty if nothing.
std::string comment(const redis::Login& login, std::string text);

Check named(const char* name, Check check);

template <class Report>
struct Row {
  const char* name;
  std::optional<Check> (*check)(const Report& report);  // nullopt if it does not apply
  const char* needs =
      nullptr;  // the command whose reply is checked; if it failed, the check is not possible
};

template <class Report>
std::optional<Check> check_of(const Report& report, const Row<Report>& row) {
  if constexpr (requires { report.failures; }) {
    const Error* error = row.needs == nullptr ? nullptr : failure_of(report.failures, row.needs);
    if (error != nullptr) return not_tested(row.needs, *error);
  }
  return row.check(report);
}

template <class Report>
Diagnosis diagnosis_of(const Report& report, const std::string& label,
                       std::span<const Row<std::type_identity_t<Report>>> rows) {
  Diagnosis diagnosis{label, {}};
  for (const Row<Report>& row : rows) {
    if (auto check = check_of(report, row)) {
      diagnosis.checks.push_back(named(row.name, *std::move(check)));
    }
  }
  return diagnosis;
}

}  // namespace rlock::cli
