#pragma once

#include <string>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/commands/session.hpp"

// What close and open share.
namespace rlock::cli {

// Which locks, and what is done with each.
struct ClosureSettings {
  Selection locks{};
  std::optional<Millis> length{};  // none: opens
  std::optional<Millis> wait{};    // until nobody holds them
  std::string note{};
};

Result<ClosureSettings> closure_settings(const Invocation& invocation);

// The names, and of the patterns the locks that exist now.
Result<std::vector<lock::LockName>> locks_to_change(Session& session, const Selection& locks);

// What has become of one lock.
struct ClosureResult {
  lock::LockName name;
  std::optional<Error> error{};
  std::optional<std::string> before{};  // the id of the closure that it had
  lock::Snapshot after{};
};
ClosureResult change_closure(Session& session, const lock::LockName& name,
                             const ClosureSettings& settings);

// The locks as they are now, as `status --json` has them.
std::string closures_json(const std::vector<ClosureResult>& results);

// Prints the failures, and returns the exit code of the last one.
int report_failures(const std::vector<ClosureResult>& results);

}  // namespace rlock::cli
