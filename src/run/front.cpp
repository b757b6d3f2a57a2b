// Runs in the process that the caller started, in front of the rlock that does the work.

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "run/run.hpp"
#include "run/signals.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

// What stays of rlock beside children that it did not start: see leave_callers_children().
namespace rlock::run {
namespace {

class Front {
 public:
  Front(Signals& signals, pid_t worker) : signals_(signals), worker_(worker) {}

  [[noreturn]] void run() {
    util::close_inherited_descriptors();
    while (true) {
      pollfd ready{signals_.fd(), POLLIN, 0};
      poll(&ready, 1, -1);
      read_signals();
      reap();
      if (!stopped_) continue;
      read_signals();  // a CONT to all of us may have come to this process first
      if (!stopped_) continue;
      raise(SIGSTOP);  // a shell watches this process
      resume();
    }
  }

 private:
  void read_signals() {
    signalfd_siginfo info{};
    while (signals_.next(info)) {
      if (info.ssi_signo == SIGCONT) {
        resume();
      } else if (info.ssi_signo != SIGCHLD) {
        forward(info);
      }
    }
  }

  // The worker has got what was sent to the whole group, or to all below the guard of an outer run;
  // what it has started is not to be sent its own signals.
  void forward(const signalfd_siginfo& info) {
    const auto sender = static_cast<pid_t>(info.ssi_pid);
    if (reached_the_group(info) || is_guard_above(sender)) return;
    if (sender != 0 && util::proc_is_ours() && util::descends_from(sender, worker_)) return;
    kill(worker_, static_cast<int>(info.ssi_signo));
  }

  void resume() {
    stopped_ = false;
    kill(worker_, SIGCONT);
  }

  // As PID 1 this process inherits orphans, too.
  void reap() {
    siginfo_t info{};
    while (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG) == 0 && info.si_pid != 0) {
      if (info.si_pid == worker_ && info.si_code == CLD_EXITED) _exit(info.si_status);
      if (info.si_pid == worker_ && info.si_code != CLD_STOPPED) die_by(info.si_status);
      if (info.si_pid == worker_) stopped_ = true;
      info.si_pid = 0;
    }
  }

  Signals& signals_;
  const pid_t worker_;
  bool stopped_ = false;
};

}  // namespace

Result<pid_t> leave_callers_children() {
  siginfo_t info{};
  if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return pid_t{0};
  TRY(auto signals, Signals::take());
  TRY_STATUS(signals.watch_command());
  TRY_STATUS(signals.watch_stops());
  const pid_t front = getpid();
  const pid_t worker = fork();
  if (worker > 0) Front(signals, worker).run();
  const int error = errno;
  signals.restore_in_child();
  if (worker == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != front) raise(SIGKILL);  // it was killed before
    return front;
  }
  return util::system_error("cannot start a process apart from the caller's children", error);
}

}  // namespace rlock::run
