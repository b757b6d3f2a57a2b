// Runs in rlock, on the main thread.

#include "run/stage.hpp"

namespace rlock::run {
namespace {

// Waiting does not stop another user's processes. Other processes may die while the lease lasts,
// and rlock kills them until then.
bool gives_up(Stage stage, const Look& look) {
  if (look.dismissed) return true;
  // A process that only refused a signal has still to be killed, or the command just keeps running.
  const bool tried =
      look.phase == CommandPhase::stuck ||
      (look.phase == CommandPhase::refused && stage == Stage::running && look.command_ended);
  if (!tried || keeps_lock(look)) return false;
  return look.all_refused || stage == Stage::running ||
         (stage == Stage::killing && look.dying_time_over);
}

}  // namespace

bool is_over(Stage stage) {
  return stage >= Stage::ended;
}

bool has_survivors(CommandPhase phase) {
  return phase == CommandPhase::stuck || phase == CommandPhase::refused;
}

bool keeps_lock(const Look& look) {
  return look.renewable && (!look.cause || row_of(*look.cause).keeps_lock);
}

Stage next(Stage stage, const Look& look) {
  if (is_over(stage)) return stage;
  if (stage == Stage::running && look.cause) {
    return look.kill_due ? Stage::killing : Stage::terminating;
  }
  if (look.phase == CommandPhase::over) return Stage::ended;
  if (gives_up(stage, look)) return Stage::gave_up;
  if (stage == Stage::terminating && look.kill_due) return Stage::killing;
  if (stage != Stage::running || look.phase != CommandPhase::outlived) return stage;
  return look.contained ? Stage::killing : Stage::left_alone;
}

}  // namespace rlock::run
