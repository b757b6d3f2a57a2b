// Runs in rlock, on the main thread.
#pragma once

#include <optional>

#include "run/run_end.hpp"
#include "run/shared_state.hpp"

// How rlock goes from one stage of a command to the next: pure rules, which a table tests.
namespace rlock::run {

// Whether the run ends as the command did: what the cause ends are processes that the command did
// not leave on purpose.
bool keeps_end(EndCause cause);

// How far rlock has come with the command, and with all that has to end with it.
enum class Stage {
  running,      // nothing ends it yet
  terminating,  // TERM was sent, KILL follows
  killing,      // KILL was sent
  // rlock watches no more:
  ended,       // nothing is left to wait for
  left_alone,  // the command exited by itself, and its daemons keep running, unlocked
  gave_up,     // what cannot be ended is not waited for any more
};

bool is_over(Stage stage);

// What rlock sees when it looks at the command.
struct Look {
  CommandPhase phase = CommandPhase::running;  // by the guard
  bool command_ended = false;                  // others may be left
  std::optional<EndCause> cause{};  // why the command, or what it left behind, has to end
  bool kill_due = false;            // with a cause: nothing may be left of it any more
  bool contained = false;           // the kernel ends all with the guard
  bool renewable = true;            // the lease can be kept for as long as processes live
  bool all_refused = false;         // what is left belongs to other users
  bool dying_time_over = false;     // what was killed should be dead, and the lease is over
  bool dismissed = false;           // the second TERM or INT came while some could not be ended
};

// Whether some of the command's processes take no signal of rlock's.
bool stuck(CommandPhase phase);

// Whether rlock keeps the lock for what it cannot end.
bool keeps_lock(const Look& look);

Stage next(Stage stage, const Look& look);

}  // namespace rlock::run
