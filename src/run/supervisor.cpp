#include "run/supervisor.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "run/descriptors.hpp"
#include "run/proc.hpp"
#include "util/duration.hpp"

namespace rlock::run {
namespace {

using namespace std::chrono_literals;

// Most commands are shorter: they are spared the thread. [SUPERVISION, Where the time goes]
constexpr auto kThreadAfter = 50ms;
constexpr auto kThreadRetry = 100ms;
constexpr auto kUnseenRetry = 100ms;
// For what does not die at once of KILL; after that it is reported.
constexpr auto kKillingTime = 5s;

// The terminal's driver sends to the whole foreground group; only a hangup goes to the session's
// leader alone. Other signals of the kernel, as of alarm(2) and of limits, are for one process.
bool reached_the_group(const signalfd_siginfo& info) {
  if (info.ssi_code != SI_KERNEL) return false;
  switch (info.ssi_signo) {
    case SIGINT:
    case SIGQUIT:
    case SIGWINCH:
      return true;
    case SIGHUP:
      return getsid(0) != getpid();
    default:
      return false;
  }
}

// What the server told, as far as a running command is concerned.
bool others_may_run(const lock::Lost& lost) {
  return lost.by || lost.how == lock::LostHow::taken || lost.how == lock::LostHow::full;
}

std::string describe(const LeaseEnd& end) {
  if (end.told) return word(end.told->how);
  if (end.by_guard) return "the lease ended while rlock was stopped";
  if (end.last_trouble) return end.last_trouble->text;
  return "the lease ended";
}

const char* word(Cause cause) {
  switch (cause) {
    case Cause::lease:
      return "lease lost";
    case Cause::run_limit:
      return "run limit reached";
    case Cause::no_renewal:
      return "no renewal thread";
    case Cause::no_guard:
      return "no guard";
  }
  return "";
}

std::string describe(const CommandEnd& end) {
  if (const auto* exited = std::get_if<Exited>(&end)) return "exit " + std::to_string(exited->code);
  return "signal " + std::to_string(std::get<Signaled>(end).signal);
}

}  // namespace

util::Result<Finish> Supervisor::run(Child& child) {
  std::optional<SignalBlock> held;  // so that a ^Z can be told of before it stops us
  if (parts_.terminal.stop_fd() >= 0) held.emplace(SIGTSTP);
  auto pid = child.start(parts_.signals, parts_.page, parts_.quarry.grouping);
  if (!pid) {
    parts_.page.leave_armed(Phase::done);
    return std::move(pid).error();
  }
  started_ = util::BootClock::now();
  // A lease that is due for renewal when the command starts cannot wait for the thread.
  next_thread_try_ = std::min(started_ + kThreadAfter, parts_.lease.next_attempt());
  parts_.quarry.command = *pid;
  parts_.quarry.guard = parts_.guard.pid();
  close_foreign_descriptors();
  watch();
  held.reset();
  return finish();
}

void Supervisor::watch() {
  while (true) {
    read_signals();
    if (over()) return;
    tend_children();
    TimePoint now = util::BootClock::now();
    start_renewal(now);
    judge(now);
    pollfd fds[3] = {{parts_.signals.fd(), POLLIN, 0},
                     {parts_.renewer.fd(), POLLIN, 0},
                     {parts_.terminal.stop_fd(), POLLIN, 0}};
    if (finish_.lost && finish_.lost->told) fds[1].fd = -1;  // heard
    now = util::BootClock::now();
    poll(fds, 3, util::poll_timeout(now, next_look()));
    if (fds[2].revents == 0) continue;
    announce_stop();
    parts_.terminal.stop();
  }
}

bool Supervisor::over() {
  ended_ = ended_ || command_ended();
  if (!ended_ || parts_.plan.until == Until::command) return ended_;
  // What survives a kill is reported, not waited for.
  return (ending_ && ending_->killed) || !descendants_left();
}

// As long as the one found last lives no other has to be looked for. When it ends SIGCHLD tells.
bool Supervisor::descendants_left() {
  bool lives = descendant_ > 0 && waitpid(descendant_, nullptr, WNOHANG) == 0;
  if (!lives) descendant_ = find_descendant(parts_.quarry);
  return descendant_ != 0;
}

void Supervisor::signal(int number) {
  signal_command(parts_.quarry, number);
}

// The zombie stays: its pid must not be given to a stranger while kills are owed.
bool Supervisor::command_ended() {
  siginfo_t info{};
  auto id = static_cast<id_t>(parts_.quarry.command);
  waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT);
  return info.si_pid != 0;
}

void Supervisor::read_signals() {
  signalfd_siginfo info{};
  while (parts_.signals.next(info)) {
    if (info.ssi_signo != SIGCHLD) forward(info);
  }
}

void Supervisor::forward(const signalfd_siginfo& info) {
  if (parts_.terminal.exists() && reached_the_group(info)) {
    return pass_on_from_terminal(static_cast<int>(info.ssi_signo));
  }
  // `kill 0` in the command reached us too: it needs no echo.
  if (info.ssi_pid != 0 && of_the_command(parts_.quarry, static_cast<pid_t>(info.ssi_pid))) return;
  signal(static_cast<int>(info.ssi_signo));
}

// Where the command is in our group it got the signal, and what becomes of the groups that it made
// is its own affair, as in a shell. One that left it (setsid, timeout), or whose descendants alone
// are left, has nobody else to tell it.
void Supervisor::pass_on_from_terminal(int number) {
  pid_t group = getpgrp();
  if (!command_ended() && getpgid(parts_.quarry.command) == group) return;
  signal_outside(parts_.quarry, number, {group, parts_.terminal.foreground()});
}

void Supervisor::tend_children() {
  if (auto tended = parts_.guard.tend(); !tended && !ending_) {
    finish_.error = std::move(tended).error();
    begin(Cause::no_guard, util::BootClock::now() + parts_.plan.kill_after);
  }
  parts_.quarry.guard = parts_.guard.pid();
  siginfo_t info{};
  auto id = static_cast<id_t>(parts_.quarry.command);
  if (waitid(P_PID, id, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0) {
    if (parts_.terminal.left_alone_by(parts_.quarry.command)) {
      announce_stop();
      parts_.terminal.stop_with(parts_.quarry.command);
    }
  }
  reap_strangers();
}

// A stopped rlock renews nothing, and its guard keeps the time.
void Supervisor::announce_stop() {
  if (ending_ || finish_.lost || !fenced() || !parts_.terminal.can_stop()) return;
  auto left = parts_.page.kill_at() - util::BootClock::now();
  parts_.observer.stopping(std::max(std::chrono::duration_cast<Millis>(left), Millis(0)));
}

// As subreaper, or as PID 1, rlock inherits orphans; those it did not start it just buries.
void Supervisor::reap_strangers() {
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (info.si_pid == parts_.quarry.command || info.si_pid == parts_.guard.pid()) {
      // Younger ones stand behind it for as long as descendants are waited for.
      if (ended_) bury_orphans(parts_.quarry);
      return;
    }
    waitid(P_PID, static_cast<id_t>(info.si_pid), &info, WEXITED | WNOHANG);
  }
}

void Supervisor::start_renewal(TimePoint now) {
  if (!awaits_thread() || now < next_thread_try_) return;
  next_thread_try_ = now + kThreadRetry;
  auto started = parts_.renewer.start();
  if (!started && !ending_) finish_.error = std::move(started).error();
}

void Supervisor::judge(TimePoint now) {
  Lease::View lease = parts_.lease.view();
  if (!finish_.lost || (!finish_.lost->told && lease.lost)) judge_lease(lease, now);
  if (!ending_ && parts_.plan.max_run && now >= started_ + *parts_.plan.max_run) {
    begin(Cause::run_limit, now + parts_.plan.kill_after);
  }
  if (ending_ && !ending_->killed && now >= kill_due(lease)) kill_everything();
}

void Supervisor::judge_lease(const Lease::View& lease, TimePoint now) {
  // The guard's word: it is ending the command already.
  if (parts_.page.phase.load() != Phase::armed) {
    finish_.lost = LeaseEnd{lease.lost, lease.trouble, true};
    return begin(Cause::lease, now);
  }
  if (lease.lost) {
    finish_.lost = LeaseEnd{lease.lost, std::nullopt, false};
    if (!fenced()) return tell(EventKind::lost, describe(*finish_.lost));
    TimePoint kill_at = others_may_run(*lease.lost) ? now : now + parts_.plan.kill_after;
    return begin(Cause::lease, std::min(kill_at, lease.kill_at));
  }
  if (!fenced()) {
    // A renewal may still come through later, and the end is worth one warning.
    if (now < lease.deadline) return;
    finish_.lost = LeaseEnd{std::nullopt, lease.trouble, false};
    return tell(EventKind::lost, describe(*finish_.lost));
  }
  if (now < lease.terminate_at) return;
  if (awaits_thread()) return begin(Cause::no_renewal, lease.kill_at);
  finish_.lost = LeaseEnd{std::nullopt, lease.trouble, false};
  begin(Cause::lease, lease.kill_at);
}

void Supervisor::begin(Cause cause, TimePoint kill_at) {
  if (ending_) {
    ending_->kill_at = std::min(ending_->kill_at, kill_at);
    return;
  }
  ending_ = Ending{cause, kill_at};
  if (kill_at > util::BootClock::now()) {
    signal(SIGTERM);
    signal(SIGCONT);  // a stopped one could not act on it
  } else {
    kill_everything();
  }
  if (finish_.lost) tell(EventKind::lost, describe(*finish_.lost));
  if (!ending_->killed) tell(EventKind::terminating, word(cause));
}

// Whatever the reason, a fenced command does not outlive its lease.
TimePoint Supervisor::kill_due(const Lease::View& lease) const {
  return fenced() ? std::min(ending_->kill_at, lease.kill_at) : ending_->kill_at;
}

bool Supervisor::awaits_thread() const {
  return parts_.plan.watchdog == lock::Watchdog::renew && !parts_.renewer.running();
}

void Supervisor::kill_everything() {
  survivors_ = kill_tree(parts_.quarry, util::BootClock::now() + kKillingTime);
  if (survivors_.unseen != 0) return;  // to be tried again
  ending_->killed = true;
  tell(EventKind::killed, word(ending_->cause));
}

TimePoint Supervisor::next_look() const {
  Lease::View lease = parts_.lease.view();
  TimePoint next = awaits_thread() ? next_thread_try_ : TimePoint::max();
  if (ending_ && !ending_->killed) next = std::min(next, kill_due(lease));
  if (descendant_ == kUnseen) next = std::min(next, util::BootClock::now() + kUnseenRetry);
  if (!ending_ && parts_.plan.max_run) next = std::min(next, started_ + *parts_.plan.max_run);
  if (finish_.lost) return next;
  return std::min(next, fenced() ? lease.terminate_at : lease.deadline);
}

Finish Supervisor::finish() {
  settle_with_guard();
  if (ending_ && !ending_->killed) kill_everything();
  finish_.exec_error = std::max(parts_.page.exec_error.load(), 0);
  finish_.started = ever_started();
  finish_.end = reap();
  reap_strangers();
  if (ending_ || std::holds_alternative<Signaled>(finish_.end)) {
    parts_.terminal.restore_after(parts_.quarry.command);
  }
  if (ending_) finish_.ended_for = ending_->cause;
  finish_.survivors = describe(survivors_);
  if (finish_.started) tell(EventKind::exited, describe(finish_.end));
  return std::move(finish_);
}

// From here on the guard signals nobody, so that the command may be reaped.
void Supervisor::settle_with_guard() {
  if (parts_.page.exec_error.load() == Page::kTooLate && !ending_) {
    finish_.lost = LeaseEnd{};
    ending_ = Ending{Cause::lease, TimePoint::min()};
  }
  if (parts_.page.leave_armed(Phase::done)) return;
  parts_.guard.await_killed(util::BootClock::now() + kKillingTime);
  if (ending_) return;
  Lease::View lease = parts_.lease.view();
  finish_.lost = LeaseEnd{lease.lost, lease.trouble, true};
  tell(EventKind::lost, describe(*finish_.lost));
  if (!ended_by_itself()) ending_ = Ending{Cause::lease, TimePoint::min()};
}

// Before the guard came, which only ever kills. Descendants that were waited for it may have ended.
bool Supervisor::ended_by_itself() const {
  siginfo_t info{};
  auto id = static_cast<id_t>(parts_.quarry.command);
  waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT);
  bool killed = info.si_code != CLD_EXITED && info.si_status == SIGKILL;
  return info.si_pid != 0 && !killed && parts_.plan.until == Until::command;
}

// A failed exec is no start, nor is one that hung until we killed it: as far as /proc can tell.
bool Supervisor::ever_started() const {
  if (parts_.page.exec_error.load() != 0) return false;
  if (!ending_ || !proc_is_ours()) return true;
  auto stat = read_stat(parts_.quarry.command);
  return !stat || !stat->before_exec();
}

CommandEnd Supervisor::reap() {
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(parts_.quarry.command), &info, WEXITED);
  if (info.si_code == CLD_EXITED) return Exited{info.si_status};
  return Signaled{info.si_status};
}

void Supervisor::tell(EventKind kind, std::string detail) {
  parts_.observer.event({kind, util::BootClock::now(), parts_.token, std::move(detail)});
}

}  // namespace rlock::run
