#pragma once

#include <array>

#include "run/child.hpp"
#include "run/process_tree.hpp"
#include "run/run.hpp"
#include "run/shared_state.hpp"
#include "run/signals.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::run {

// What rlock orders its guard to do; a message each.
struct GuardOrder {
  // terminal_signal: a signal of the terminal, which its driver sent to the groups `skip`: where
  // the command is in the first of them, rlock's, what became of the groups that it made is its own
  // affair. terminate: a signal that begins an ending: what outlives the command is killed then.
  enum class Kind { signal, terminate, terminal_signal, end, dismiss };
  Kind kind = Kind::end;
  std::array<int, 2> signals{};  // to the whole tree; 0: none
  std::array<pid_t, 2> skip{};   // but not to these groups, which have them already; 0: none
};

// What the guard is to do, and with what. The descriptors are made before the fork, where an error
// can still be reported.
struct GuardTask {
  Child& child;
  const Signals& signals;
  SharedState& state;
  Grouping grouping;
  ReleaseAfter until;
  pid_t session;   // rlock's
  int rlocks_end;  // of `line`: to be closed
  int line;   // orders come in, a byte goes out when the state has changed; its end: rlock is gone
  int timer;  // a timerfd of CLOCK_BOOTTIME: it counts a suspend, too
  int children;  // a signalfd of SIGCHLD
};

// The guard after its fork, born with all signals blocked: starts the command and watches over it
// until it has ended. Async-signal-safe throughout.
[[noreturn]] void guard_process(const GuardTask& task) noexcept;

// Records how the command ended, as reaped. `ended_first`: it was not being ended.
void record_end(SharedState& state, const siginfo_t& info, bool ended_first) noexcept;

// Whether the dead, unreaped child died before it got through its exec; as far as /proc can say.
bool died_before_exec(pid_t child) noexcept;

}  // namespace rlock::run
