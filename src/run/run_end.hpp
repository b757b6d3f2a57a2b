// Runs in rlock, on the main thread.
#pragma once

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lock/store.hpp"
#include "lock/wait.hpp"

// How a run ends. Each cause has a row in a table of run_end.cpp: kEnds, and kEndCauses for what
// rlock ends.
namespace rlock::run {

// How the command ended by itself.
struct Exited {
  int code = 0;
};
struct Signaled {
  int signal = 0;
};
using CommandEnd = std::variant<Exited, Signaled>;

// Why the lease was lost: the server reported it, or no renewal succeeded in time.
struct LeaseEnd {
  std::optional<lock::Lost> reported;  // as reported by the server
  std::optional<Error> last_error;     // without `reported`: why the last renewal failed
  bool by_guard = false;  // rlock was stopped or starved, so the guard stopped the command
  lock::LaterHolder later_holder =
      lock::LaterHolder::unknown;  // without `reported`: who had the lock
  Millis survives{0};  // the longest outage that such a lease survives; 0: it was not renewed
};

// Why a run ends.
enum class RunCause {
  command,  // the command exited by itself, with or without its lease
  lease_lost,
  never_started,  // the lease expired before the start
  run_limit,
  cannot_exec,
  no_renewal,
  no_guard,
  busy,
  timed_out,
  removed,
  done,
  failures,
  superseded,
  upgrade,
  signal,
  unreachable,
  error,
};

// Why rlock stops a command. cancel: after a request to stop, the command has exited and left
// processes behind, or --stop-after has expired. died: the command died of a signal and left
// processes behind.
enum class EndCause { lease, run_limit, no_renewal, no_guard, cancel, died };

// Each of these causes has a row.
struct EndCauseRow {
  EndCause cause;
  std::string_view text;  // in the event log
  RunCause run;           // of the run, if the command was started
  // Whether the run ends as the command did, because rlock stops only processes that the command
  // did not leave on purpose.
  bool keeps_end;
  bool keeps_lock;  // for processes that rlock cannot stop, if it can renew the lease
};
const EndCauseRow& row_of(EndCause cause);

// Whether a success was recorded [plan.claim.once].
enum class Recording {
  none,  // nothing was to be recorded, or the run did not succeed
  recorded,
  pushed_out_another,  // and the least recently used keys were forgotten
  stopped,             // rlock was asked to stop the command, which may have exited with 0 half-way
  unconfirmed,
};

// Used instead of ENOENT if the command exists, but the interpreter of the script or the loader of
// the program is missing.
inline constexpr int kNoInterpreter = ELIBACC;
// The exit code of a shell for a command whose exec failed with this errno.
constexpr int exec_exit_code(int error) {
  return error == ENOENT ? 127 : 126;
}

// The end of a run that had the lock. supervise() sets everything but the result of the release.
struct RunEnd {
  CommandEnd end{};      // of the command's process, even if its exec failed
  bool started = false;  // whether the process ran the command
  int exec_error = 0;    // errno if the command could not be executed
  // No cause that keeps the command's own exit.
  std::optional<EndCause> ended_for{};
  std::optional<LeaseEnd> lost{};        // even if the loss did not stop the command
  std::optional<Error> error{};          // with no_renewal and no_guard
  std::vector<std::string> survivors{};  // processes that rlock could not stop, and why
  bool asked_to_stop = false;            // TERM, INT, HUP or QUIT came or was passed on
  bool left_nothing = false;             // rlock stopped every process of the command
  // Set by the release:
  std::optional<Error> unreleased{};  // why the release was not confirmed
  Recording recording = Recording::none;
  Millis kept_for{0};  // how long the lease of a nested run that was killed keeps the lock
};

// A signal ended the wait: the run has left the queue, and the command did not run.
struct WaitSignaled {
  int signal = 0;  // 0: the wait was called off
};

// The types of `lock` mean that the lock was not acquired. Upgrade: an outer run holds it in a
// wider mode, so waiting for it would never end.
using RunOutcome =
    std::variant<RunEnd, lock::Refused, lock::TimedOut, lock::Upgrade, WaitSignaled, Error>;

// notice: not printed with -q.
enum class Severity { silent, notice, error };

// What the exit code depends on if the cause does not fix it: the command's own, that of the error,
// 128 plus the signal, or one that --exit-code sets.
enum class CodeOf { command, error, signal, busy, done, superseded, failures };

// How each output presents a cause.
struct EndRow {
  RunCause cause;
  std::variant<int, CodeOf> exit_code;
  Severity severity;       // of its message
  std::string_view event;  // in the event log; empty: the command has run, and `exited` reports it
  std::string_view history;  // without blanks; empty: `exit:N`, `signal:N`, or no row
  std::string_view kind;     // of a JSON error; empty: the kind of the error
};

RunCause cause_of(const RunEnd& end);
RunCause cause_of(const RunOutcome& outcome);
const EndRow& row_of(RunCause cause);

}  // namespace rlock::run
