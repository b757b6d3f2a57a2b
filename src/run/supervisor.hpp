// Runs in rlock, on the main thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/guard.hpp"
#include "run/renewer.hpp"
#include "run/run.hpp"
#include "run/stage.hpp"

namespace rlock::run {

// What became of the command; it is reaped, and so is all that had to end with it.
struct CommandResult {
  CommandEnd end;                     // of its process, also when that never got through its exec
  bool started = false;               // whether that ran the command, not only tried to
  int exec_error = 0;                 // errno when it could not be executed
  std::optional<EndCause> ended_for;  // neither cancel nor died, which keep the command's own end
  std::optional<LeaseEnd> lost;       // also when that did not end the command
  std::optional<Error> error;         // with no_renewal and no_guard
  std::vector<std::string> survivors;
  bool asked_to_stop = false;  // TERM, INT, HUP or QUIT came, or was passed on
};

// Has the guard start the command, and watches over both and the renewal thread until the command
// and all that had to end with it are gone. What cannot be ended is waited for, and the lock kept,
// unless the lease is lost. `guard`: one that was forked before the grant, if any; afterwards that
// of the command, which has nothing more to do, so that its own end need not be waited for.
// ErrorKind::system where a process or a descriptor is refused: then nothing has run.
Result<CommandResult> supervise(const RunContext& context, const HeldLock& held_lock,
                                SharedLease& lease, std::unique_ptr<Guard>& guard);

}  // namespace rlock::run
