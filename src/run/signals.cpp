// Runs in rlock, on the main thread; restore_in_child() in the command, before its exec.

#include "run/signals.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>

#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::run {
namespace {

// The signals that terminate a process and can be caught, without the faults (SEGV, BUS, FPE, ILL,
// TRAP, SYS): bugs of rlock raise those, and they must kill rlock as usual; the guard then acts.
constexpr std::array kTerminating{SIGHUP,    SIGINT,  SIGQUIT, SIGABRT,  SIGUSR1,
                                  SIGUSR2,   SIGALRM, SIGTERM, SIGXCPU,  SIGPROF,
                                  SIGVTALRM, SIGIO,   SIGPWR,  SIGSTKFLT};

constexpr std::array kTerminalSignals{SIGINT, SIGQUIT, SIGHUP, SIGTSTP};

bool ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void set_disposition(int signal, void (*handler)(int), struct sigaction* before) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(signal, &action, before);
}

// SIGCHLD as the caller left it.
struct sigaction inherited_chld {};

void block(int signal, sigset_t& blocked, sigset_t& watched) {
  sigaddset(&blocked, signal);
  // A signal that is blocked is queued even if it is ignored, which would break nohup.
  if (!ignored(signal)) sigaddset(&watched, signal);
}

}  // namespace

Status open_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is `fd` itself, because all lower ones are open.
    if (util::open_null() < 0) return util::system_error("cannot open a standard descriptor");
  }
  return Done{};
}

void make_children_waitable() {
  set_disposition(SIGCHLD, SIG_DFL, &inherited_chld);
}

Result<Signals> Signals::take() {
  Signals signals;
  sigset_t blocked = util::signal_set({SIGCHLD, SIGWINCH});
  for (int signal : kTerminating) block(signal, blocked, signals.watched_);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) {
    block(signal, blocked, signals.watched_);
  }
  sigprocmask(SIG_BLOCK, &blocked, &signals.inherited_mask_);
  set_disposition(SIGPIPE, SIG_IGN, &signals.inherited_pipe_);
  // If a line does not fit below `ulimit -f`, only the write fails.
  set_disposition(SIGXFSZ, SIG_IGN, &signals.inherited_xfsz_);
  signals.fd_.reset(signalfd(-1, &signals.watched_, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals.fd_) return util::system_error("cannot watch signals: signalfd");
  return signals;
}

Status Signals::watch(std::initializer_list<int> more) {
  for (int signal : more) sigaddset(&watched_, signal);
  if (signalfd(fd_.get(), &watched_, 0) < 0)
    return util::system_error("cannot watch signals: signalfd");
  return Done{};
}

Status Signals::watch_command() {
  return ignored(SIGWINCH) ? watch({SIGCHLD}) : watch({SIGCHLD, SIGWINCH});
}

Status Signals::watch_stops() {
  const sigset_t stops = util::signal_set({SIGTSTP, SIGCONT});
  sigprocmask(SIG_BLOCK, &stops, nullptr);
  return watch({SIGTSTP, SIGCONT});
}

bool Signals::next(signalfd_siginfo& info) {
  return read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
}

int Signals::next_number() {
  signalfd_siginfo info{};
  return next(info) ? static_cast<int>(info.ssi_signo) : 0;
}

void Signals::restore_in_child() const noexcept {
  sigaction(SIGCHLD, &inherited_chld, nullptr);
  sigaction(SIGPIPE, &inherited_pipe_, nullptr);
  sigaction(SIGXFSZ, &inherited_xfsz_, nullptr);
  sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
}

bool reached_the_group(const signalfd_siginfo& info) {
  if (info.ssi_code != SI_KERNEL) return false;
  switch (info.ssi_signo) {
    case SIGINT:
    case SIGQUIT:
    case SIGTSTP:
    case SIGWINCH:
      return true;
    case SIGHUP:
      return getsid(0) != getpid();
    default:
      return false;
  }
}

GuardAbove guard_above(const signalfd_siginfo& info) {
  const auto sender = static_cast<pid_t>(info.ssi_pid);
  const bool above = sender > 1 && util::proc_is_ours() &&
                     util::read_name(sender) == util::kGuardName &&
                     util::descends_from(getpid(), sender);
  if (!above) return {};
  return {sender, info.ssi_code != SI_QUEUE};
}

uint32_t pending_terminal_signals() noexcept {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  uint32_t found = 0;
  for (int signal : kTerminalSignals) {
    if (sigismember(&pending, signal) == 1) found |= 1U << signal;
  }
  return found;
}

void send_terminal_signals(pid_t process, uint32_t which) noexcept {
  for (int signal : kTerminalSignals) {
    if ((which & 1U << signal) != 0) kill(process, signal);
  }
}

void die_by(int signal) {
  // The command dumped core if its limits allow that; a core of rlock would only hide that one. A
  // core pipe does not obey the limit, so rlock sets both.
  prctl(PR_SET_DUMPABLE, 0);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  set_disposition(signal, SIG_DFL, nullptr);
  const sigset_t only = util::signal_set({signal});
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  _exit(128 + signal);
}

}  // namespace rlock::run
