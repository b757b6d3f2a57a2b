// Runs in rlock, on the main thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lock/held_lock.hpp"
#include "lock/lease.hpp"
#include "lock/wait.hpp"

// What a run is to do.
namespace rlock::run {

enum class OnLost { terminate, ignore };

// Whether the command has its own pid namespace, which ends with its guard. as_user: in a user
// namespace too, which needs no CAP_SYS_ADMIN, but has no other users.
enum class Contain { no, with_rights, as_user };

// When the lock may be released: when the command has exited, or when all its descendants have
// exited, too.
enum class ReleaseAfter { command, descendants };

// An outer run that, according to the environment, holds the lock.
struct OuterRun {
  lock::HeldLock held_lock;
  // Whether to restore a lease that the server has lost: only while that run lives, because an old
  // token must not come back.
  bool may_restore = false;
  // How long the outer run has to restore its lease itself, if the server has lost it.
  Millis restore_grace{0};
};

struct Plan {
  lock::AcquireCall claim;  // name, owner, limit, ttl, record, queueing
  lock::WaitLimits limits;
  std::vector<std::string> argv;  // the command, executed directly: argv[0] is looked up in PATH
  // Returns the entries to add to the command's inherited environment: `NAME=value`; `NAME` without
  // a value removes the variable. The names are the same for each lock.
  std::function<std::vector<std::string>(const lock::HeldLock&)> environment;
  // The claim's record while processes that rlock cannot stop keep the lock; null: unchanged.
  std::function<std::string(const std::string& why)> record_ending{};
  // Tried in turn: if one of them holds the lock, this run enters it and does not wait.
  std::vector<OuterRun> outer_runs{};
  Millis kill_after{5'000};
  std::optional<Millis> max_run{};  // counted from the start of the command, not of the wait
  // The time from a TERM, INT or QUIT that was passed on until KILL for the remaining processes.
  std::optional<Millis> stop_after{};
  OnLost on_lost = OnLost::terminate;
  ReleaseAfter until = ReleaseAfter::command;
  lock::Watchdog watchdog = lock::Watchdog::renew;
  Contain contain = Contain::no;
  bool unlocked = false;  // no lock is held: no lease is watched
};

}  // namespace rlock::run
