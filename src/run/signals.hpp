// Runs in rlock, on the main thread; restore_in_child() in the command, before its exec.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <cstdint>
#include <initializer_list>

#include "util/fd.hpp"
#include "util/process.hpp"
#include "util/result.hpp"

namespace rlock::run {

// Opens /dev/null on each of fds 0-2 that is closed, so that no socket of ours becomes one of them.
// First thing in main(). The command does not inherit these: they are closed on exec.
void open_standard_descriptors();

// The signal state that rlock was started with, and rlock's own: every catchable terminating signal
// is blocked and read from a signalfd, except those inherited as ignored. [docs/SUPERVISION.md,
// "Order of a run"]
class Signals {
 public:
  // At first only signals that end a wait are readable. ErrorKind::system if no descriptor is
  // available.
  static Result<Signals> take();

  // From now on what matters during a command is readable too: SIGCHLD, and SIGWINCH, which some
  // servers take for "stop gracefully".
  Status watch_command();
  // SIGTSTP and SIGCONT are readable, too; SIGCONT resumes this process all the same.
  Status watch_stops();

  // Readable while a signal waits.
  int fd() const { return fd_.get(); }
  // The next waiting signal; false when there is none.
  bool next(signalfd_siginfo& info);
  // The number of the next one, 0 when there is none: what ended a wait.
  int next_number();
  // In the command, before exec: mask and dispositions as the caller gave them. Async-signal-safe.
  void restore_in_child() const noexcept;

 private:
  Signals() = default;
  Status watch(std::initializer_list<int> more);

  util::Fd fd_;
  sigset_t watched_ = util::signal_set({});
  sigset_t inherited_mask_{};
  struct sigaction inherited_chld_ {};
  struct sigaction inherited_pipe_ {};
  struct sigaction inherited_xfsz_ {};
};

// Whether a signal was sent to the whole foreground group: the terminal's driver sends to all of
// it, only a hangup to the session's leader alone. Other signals of the kernel, as of alarm(2) and
// of limits, are for one process.
bool reached_the_group(const signalfd_siginfo& info);
// Whether the guard of an outer run sent it: to all processes below, this one included.
bool is_guard_above(pid_t sender);

// Of the signals by which a terminal ends, stops or hangs up its foreground group, those that are
// pending here: for each a bit, 1 << its number. Both are async-signal-safe.
uint32_t pending_terminal_signals() noexcept;
void send_terminal_signals(pid_t process, uint32_t which) noexcept;

// Ends this process as `signal` ended the command: by the same signal, without a core; as PID 1, or
// where that does not end us, with 128 + signal.
[[noreturn]] void die_by(int signal);

}  // namespace rlock::run
