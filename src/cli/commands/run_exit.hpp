#pragma once

#include <optional>
#include <string>

#include "redis/open.hpp"
#include "run/run.hpp"

namespace rlock::cli {

// What a verdict's message is about and what the user asked for.
struct MessageContext {
  std::string name;
  std::string server;
  std::string command;  // argv[0]
  int conflict_code = 75;
  std::optional<Millis> max_run;
  Millis waited{0};
  redis::Format format = redis::Format::native;
  bool unlocked = false;  // --fail-open: no server answered
};

enum class Severity { silent, notice, error };  // notice: not said under -q

// How rlock ends: by a signal or with a code, and the one line it says.
struct RunExit {
  int code = 0;
  std::optional<int> signal;
  Severity severity = Severity::silent;
  std::string message;
};

// Before a command starts without the lock: why.
std::string unlocked_warning(const Error& error, const MessageContext& context);

// How a lease ended: `it was taken by …`, `the lease ended: …`.
std::string lease_end_text(const run::LeaseEnd& lease);

// [rlock(1), EXIT STATUS]
RunExit to_exit(const run::RunOutcome& outcome, const MessageContext& context);

}  // namespace rlock::cli
