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

// Opens /dev/null on each of fds 0-2 that is closed, so that no descriptor of rlock becomes one of
// them. Call it first in main(). The command does not inherit these descriptors: they are
// close-on-exec. ErrorKind::system if the kernel refuses them.
Status open_standard_descriptors();

// Sets SIGCHLD to its default, because cron may start rlock with SIGCHLD ignored, and then the
// kernel would not keep the status of a child. The command gets SIGCHLD as the caller had it. Call
// it in main(), before rlock starts a process.
void make_children_waitable();

// The signal state with which rlock was started, and rlock's own: every catchable terminating
// signal is blocked and read from a signalfd, except those inherited as ignored.
// [docs/SUPERVISION.md, "Order of a run"]
class Signals {
 public:
  // At first only signals that end a wait are readable. ErrorKind::system if no descriptor is
  // available.
  static Result<Signals> take();

  // Also makes readable the signals that matter while a command runs: SIGCHLD, and SIGWINCH, which
  // some servers interpret as "stop gracefully".
  Status watch_command();
  // Also makes SIGTSTP and SIGCONT readable; SIGCONT still resumes this process.
  Status watch_stops();

  // Readable while a signal is pending.
  int fd() const { return fd_.get(); }
  // Reads the next pending signal; false if there is none.
  bool next(signalfd_siginfo& info);
  // The number of the next pending signal, which ended a wait; 0 if there is none.
  int next_number();
  // Call it in the command, before exec: restores mask and dispositions as the caller gave them.
  // Async-signal-safe.
  void restore_in_child() const noexcept;

 private:
  Signals() = default;
  Status watch(std::initializer_list<int> more);

  util::Fd fd_;
  sigset_t watched_ = util::signal_set({});
  sigset_t inherited_mask_{};
  struct sigaction inherited_pipe_ {};
  struct sigaction inherited_xfsz_ {};
};

// Whether a signal was sent to the whole foreground group. The terminal's driver sends to the whole
// group, except a hangup, which it sends only to the session's leader. Other signals of the kernel,
// for example from alarm(2) and from limits, are for one process.
bool reached_the_group(const signalfd_siginfo& info);
// The guard of an outer run that sent a signal.
struct GuardAbove {
  pid_t pid = 0;             // 0: another process sent it
  bool reached_all = false;  // sent to all processes below the guard, not only to its command
};
GuardAbove guard_above(const signalfd_siginfo& info);

// The pending ones of the signals by which a terminal terminates, stops or hangs up its foreground
// group: for each a bit, 1 << its number. Both functions are async-signal-safe.
uint32_t pending_terminal_signals() noexcept;
void send_terminal_signals(pid_t process, uint32_t which) noexcept;

// Makes this process die of `signal`, as the command did, without a core dump. If this process is
// PID 1, or survives the signal, it exits with 128 + signal.
[[noreturn]] void die_by(int signal);

}  // namespace rlock::run
