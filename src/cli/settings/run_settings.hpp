#pragma once

#include <sys/types.h>
#include <time.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/options/parse.hpp"
#include "cli/output/record.hpp"
#include "cli/settings/resolve.hpp"
#include "lock/store.hpp"
#include "run/run.hpp"

namespace rlock::cli {

// Work that is to be done once: --once, --once-per, --once-within. ErrorKind::usage says what is
// wrong.

// What a run that begins at `now` is asked to do once; none where it has no such option.
Result<std::optional<lock::Once>> once_choice(const Choices& choices, time_t now);

// The KEY of --once, where it was given.
Result<std::optional<std::string>> once_key_choice(const Choices& choices);

// What `run` and `acquire` alike are asked about the lock. ErrorKind::usage says what is wrong.

// Where --ttl was not given. With it a run survives a failover of Sentinel with the default
// down-after-milliseconds (30 s).
inline constexpr Millis kDefaultTtl{60'000};

// The record of a holder: its process and what it runs, unless --hide-command, with the --reason
// and the trace that TRACEPARENT names. `pid` may be another process: rlock acquire itself has
// ended when others read the record.
Record holder_record(pid_t pid, const std::vector<std::string>& argv, const Choices& choices,
                     Getenv getenv);

// Of a run whose command did not run.
struct ExitCodes {
  int busy = 75;
  int done = 0;
  int superseded = 75;
  int failures = 75;  // --max-failures
  bool operator==(const ExitCodes&) const = default;
};

struct WaitSettings {
  std::optional<Millis> wait{};  // none: forever; 0: not at all
  ExitCodes codes{};
};

struct ClaimSettings {
  lock::AcquireCall call;
  WaitSettings waiting;
};

// The claim of a new owner: how the lock is held (--slots, --shared, --min-hold) and waited for
// (--wait, --nonblock, --max-queue, --supersede, and the exit codes).
Result<ClaimSettings> claim_settings(lock::LockName name, Millis ttl, lock::Responsive responsive,
                                     std::string record, const Choices& choices);

// When the command may run without the lock: if no server answers anything for so long, or as long
// as one may take to be reached.
struct FailOpen {
  std::optional<Millis> after{};
};

// What `rlock run` or `rlock acquire` was asked to do, parsed and checked.
struct RunSettings {
  run::Plan plan;  // of acquire: without a command
  WaitSettings waiting{};
  std::optional<std::string> event_log{};
  bool report = false;  // a failure of the command
  std::optional<FailOpen> fail_open{};
  std::optional<pid_t> renew_while{};  // of acquire
};

// ErrorKind::usage says what is wrong. Left empty are the deadline of the wait, which counts from
// the start of the acquisition, and those parts of the plan that depend on the server.
Result<RunSettings> run_settings(const Invocation& invocation, Getenv getenv);

}  // namespace rlock::cli
