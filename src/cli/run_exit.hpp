#pragma once

#include <optional>
#include <string>

#include "cli/session.hpp"
#include "cli/settings/run_settings.hpp"
#include "redis/open.hpp"
#include "run/run_end.hpp"

namespace rlock::cli {

// The context of a message: what the user asked for, and what the run has shown.
struct MessageContext {
  const RunSettings& settings;
  const Session& session;
  Millis waited{0};
  Millis ran{0};
  std::string slots{};  // slots_held() of a busy lock with slots
  // A key that prevents every run from acquiring the lock: `; the key …`.
  std::string blocking_key{};
  bool unlocked = false;        // --fail-open: no server answered
  bool keeps_position = false;  // --ticket: the next call has the position in the queue

  const lock::AcquireCall& claim() const { return settings.plan.claim; }
  const std::string& name() const { return claim().name.text(); }
  // The option that makes rlock try for longer.
  std::string_view longer() const;
};

// How rlock ends: by a signal or with an exit code, and the one line that it prints.
struct RunExit {
  int code = 0;
  std::optional<int> signal{};
  run::Severity severity = run::Severity::silent;
  std::string message{};
  std::string_view event{};                  // in the event log; empty if the command has run
  std::string_view kind{};                   // of a JSON error; empty: busy
  std::optional<lock::Obstacle> obstacle{};  // why the lock is busy
};

// The obstacle that kept a run from the lock; nullopt if the run ended for another reason, or if
// the obstacle is not known.
std::optional<lock::Obstacle> obstacle_of(const run::RunOutcome& outcome);

// Marks the holder that kept a run from the lock if it has died. Asks the server.
void mark_died(run::RunOutcome& outcome, const lock::LockName& name, const Session& session);

// `2 of 2 slots are held, one of them held by …`, and why there are no more, if the lock is busy
// according to `outcome`: of different limits the smallest one applies. Asks the server.
std::string slots_held(const run::RunOutcome& outcome, lock::Limit own, const lock::LockName& name,
                       const Session& session);
// `2 of 2 slots are held`, or `2 of 2 slots are in their cool-down (--min-hold); the first is free
// in 59m`. Empty if a slot is free.
std::string slots_text(const lock::Snapshot& lock, lock::Limit own);

// Why rlock starts a command without the lock.
std::string unlocked_warning(const Error& error, const MessageContext& context);

// How a lease ended: `it was taken by …`, `the lease could not be renewed: …`.
std::string lease_end_text(const run::LeaseEnd& lease);

// Converts an outcome to the exit that rlock(1), EXIT STATUS, lists.
RunExit to_exit(const run::RunOutcome& outcome, const MessageContext& context);

// Prints the message, unless `verbosity` hides it, and dies of the signal, if any. Returns the exit
// code.
int report_exit(const RunExit& run_exit, Verbosity verbosity);

}  // namespace rlock::cli
