// Runs in rlock, on the main thread.
#pragma once

#include <optional>

#include "run/run_end.hpp"
#include "run/shared_state.hpp"

// The stages of a command and the rules for moving between them: pure functions, tested by a table.
namespace rlock::run {

// The stage of the command and of all processes that have to end with it.
enum class Stage {
  running,      // rlock does not stop it so far
  terminating,  // TERM was sent, KILL follows
  killing,      // KILL was sent
  // Final stages:
  ended,       // no process is left to wait for
  left_alone,  // the command exited by itself, and its daemons keep running without the lock
  gave_up,     // rlock no longer waits for processes that it cannot stop
};

bool is_over(Stage stage);

// What rlock knows when it checks the command.
struct Look {
  CommandPhase phase = CommandPhase::running;  // as the guard sees it
  bool command_ended = false;                  // the command has exited; others may be left
  // Why the command, or its leftover processes, have to be stopped.
  std::optional<EndCause> cause{};
  bool kill_due = false;     // with a cause: no process may be left now
  bool contained = false;    // the kernel kills all processes with the guard
  bool renewable = true;     // rlock can keep renewing the lease while processes live
  bool all_refused = false;  // the remaining processes belong to other users
  bool dying_time_over =
      false;               // killed processes should be dead by now, and the lease has expired
  bool dismissed = false;  // a second TERM or INT came while some could not be stopped
};

// Whether there are processes of the command that rlock cannot stop.
bool has_survivors(CommandPhase phase);

// Whether rlock keeps the lock because of processes that it cannot stop.
bool keeps_lock(const Look& look);

Stage next(Stage stage, const Look& look);

}  // namespace rlock::run
