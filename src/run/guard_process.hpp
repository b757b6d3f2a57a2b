#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

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
  // affair. reached: a signal that all of them have got already, from the guard of an outer run.
  // terminate: a signal that begins an ending: what outlives the command is waited for until the
  // order `end`. terminate_but_nohup: the same, but who ignores a hangup is let go.
  enum class Kind {
    signal,
    reached,
    terminate,
    terminate_but_nohup,
    terminal_signal,
    end,
    dismiss
  };
  Kind kind = Kind::end;
  std::array<int, 2> signals{};  // to the whole tree; 0: none
  std::array<pid_t, 2> skip{};   // but not to these groups, which have them already; 0: none
};

// The first message to the guard: the lock is held, and the command is to start.
struct GuardStart {
  static constexpr size_t kRoom = 4096;

  Grouping grouping = Grouping::own;
  uint32_t keys = 0;     // pending_terminal_signals() of rlock; the command does not have them
  uint32_t entries = 0;  // of the environment, which replace those of the child; 0: it stays
  char text[kRoom];      // they, each with its final zero; only what is used is sent
};

// What the guard is to do, and with what. The descriptors are made before the fork, where an error
// can still be reported.
struct GuardTask {
  Child& child;
  const Signals& signals;
  SharedState& state;
  ReleaseAfter until;
  pid_t session;   // rlock's
  int rlocks_end;  // of `line`: to be closed
  int line;   // orders come in, a byte goes out when the state has changed; its end: rlock is gone
  int timer;  // a timerfd of CLOCK_BOOTTIME: it counts a suspend, too
  int signals_fd;  // a signalfd of SIGCHLD and of util::exemption_signal()
};

// The guard after its fork, born with all signals blocked: waits for the GuardStart, starts the
// command and watches over it until it has ended. Where rlock is gone before, it just ends.
// Async-signal-safe throughout: another thread of rlock may hold the allocator.
[[noreturn]] void guard_process(const GuardTask& task) noexcept;

// By the guard of a contained run after its fork, born with all signals blocked: enters its
// namespaces as `user` and `group`, and sends a byte over `line`. Exits where it is refused, with
// the state's start_error. `own_users`: in a user namespace of its own, too. Async-signal-safe.
void contain_guard(SharedState& state, int line, bool own_users, uid_t user, gid_t group) noexcept;

// Records how the command ended, as reaped. `ended_first`: it was not being ended.
void record_end(SharedState& state, const siginfo_t& info, bool ended_first) noexcept;

// Whether the dead, unreaped child died before it got through its exec; as far as /proc can say.
bool died_before_exec(pid_t child) noexcept;

}  // namespace rlock::run
