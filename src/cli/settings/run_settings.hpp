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
#include "run/plan.hpp"

namespace rlock::cli {

// Checks that no variable in the name was left empty or unreplaced, because run, acquire and close
// would act on a lock that nobody meant. ErrorKind::usage says what is wrong. Commands that read,
// break or open a lock accept every name, and so does another client's format.
Status check_new_name(const lock::LockName& name, const Choices& choices);

// Work that is done only once: --once, --once-per, --once-within. ErrorKind::usage says what is
// wrong.

// The work that a run which begins at `now` does only once; nullopt without such an option.
Result<std::optional<lock::Once>> once_choice(const Choices& choices, time_t now);

// The KEY of --once, if given.
Result<std::optional<std::string>> once_key_choice(const Choices& choices);

// What `run` and `acquire` share about the lock. ErrorKind::usage says what is wrong.

// Used if --ttl is not given. With it a run survives a Sentinel failover with the default
// down-after-milliseconds (30 s).
inline constexpr Millis kDefaultTtl{60'000};

// The record of a holder: its process and, unless --hide-command, its command, with the --reason
// and the trace that TRACEPARENT names. `pid` may be another process, because rlock acquire itself
// has exited when others read the record.
Record holder_record(pid_t pid, const std::vector<std::string>& argv, const Choices& choices,
                     Getenv getenv);

// The exit codes of a run whose command did not run.
struct ExitCodes {
  int busy = 75;
  int done = 0;
  int superseded = 75;
  int failures = 75;  // --max-failures
  int unavailable = 69;
  int denied = 77;
  int config = 78;
  // The code for an error because of which the command did not run.
  int of(ErrorKind kind) const;
  bool operator==(const ExitCodes&) const = default;
};

// Those that --exit-code and -E choose, even if the other options are wrong; the default ones if
// these are wrong.
ExitCodes chosen_codes(const Choices& choices);

struct WaitSettings {
  std::optional<Millis> wait{};  // nullopt: no limit; 0: do not wait
  ExitCodes codes{};
};

struct ClaimSettings {
  lock::AcquireCall call;
  WaitSettings waiting;
  Warnings warnings;  // about a name that an empty variable may have shortened
};

// The claim of a new owner: how it holds the lock (--slots, --shared, --min-hold) and waits for it
// (--wait, --nonblock, --max-queue, --supersede, and the exit codes).
Result<ClaimSettings> claim_settings(lock::LockName name, Millis ttl, lock::Responsive responsive,
                                     std::string record, const Choices& choices);

// Time without any answer from a server, after which the command runs without the lock. nullopt:
// the time for which rlock tries to reach one.
struct FailOpen {
  std::optional<Millis> after{};
};

// What the user asked `rlock run` or `rlock acquire` to do, parsed and checked.
struct RunSettings {
  run::Plan plan;  // for acquire: without a command
  WaitSettings waiting{};
  Warnings warnings{};
  std::optional<std::string> ticket{};  // the file
  std::optional<std::string> event_log{};
  bool report = false;  // whether to report a failed command
  std::optional<FailOpen> fail_open{};
  std::optional<pid_t> renew_while{};  // for acquire
};

// ErrorKind::usage says what is wrong. Leaves empty the deadline of the wait, which counts from the
// start of the acquisition, and those parts of the plan that depend on the server.
Result<RunSettings> run_settings(const Invocation& invocation, Getenv getenv);

}  // namespace rlock::cli
