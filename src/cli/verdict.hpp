#pragma once

#include <optional>
#include <string>

#include "redis/open.hpp"
#include "run/run.hpp"

namespace rlock::cli {

// What a verdict's message is about and what the user asked for.
struct RunContext {
  std::string name;
  std::string server;
  std::string command;  // argv[0]
  int conflict_code = 75;
  std::optional<util::Millis> max_run;
  util::Millis waited{0};
  redis::Format format = redis::Format::native;
  bool unlocked = false;  // --fail-open: no server answered
};

enum class Weight { silent, notice, error };  // notice: not said under -q

// How rlock ends: by a signal or with a code, and the one line it says.
struct Verdict {
  int code = 0;
  std::optional<int> signal;
  Weight weight = Weight::silent;
  std::string message;
};

// Before a command starts without the lock: why.
std::string unlocked_warning(const util::Error& error, const RunContext& context);

// How a lease ended: `it was taken by …`, `the lease ended: …`.
std::string lease_text(const run::LeaseEnd& lease);

// [CLI.md, Exit codes]
Verdict judge(const run::Outcome& outcome, const RunContext& context);

}  // namespace rlock::cli
