#include "run/guard.hpp"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "lock/timing.hpp"
#include "run/proc.hpp"
#include "util/boot_timer.hpp"

namespace rlock::run {
namespace {

Error cannot_start(const char* what, int error) {
  return {ErrorKind::system,
          std::string("cannot start the guard: ") + what + ": " + std::strerror(error)};
}

// Jobs that the caller started before `exec rlock`.
void add_children(Exclusions& children) {
  siginfo_t info{};
  if (waitid(P_ALL, 0, &info, kDeadChildren) != 0) return;
  util::Fd list(open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC));
  auto add = [&](pid_t pid) {
    children.add(pid);
    return true;
  };
  if (list) for_each_child_in(list.get(), add);
}

}  // namespace

// rlock in the place of a dead guard: its processes have become children of rlock.
class Guard::Successor final : private ProcessTree::Reaper {
 public:
  Successor(SharedState& state, Grouping grouping, pid_t session, const Exclusions& older)
      : state_(state), tree_(grouping, session, excluded_), ending_(tree_, *this, state) {
    excluded_.add(older);
    excluded_.add(state_.exempt);
    if (proc_is_ours() && !state_.command_ended()) command_ = state_.command;
    tree_.set_command(command_);
    raise_priority();
    ending_.begin(BootClock::now());
  }

  void round(TimePoint now) {
    if (ending_.round(now)) state_.phase = CommandPhase::over;
  }
  TimePoint next_round() const { return ending_.next_round(); }

 private:
  bool reap() noexcept override {
    constexpr int kReaps = 64;
    siginfo_t info{};
    for (int count = 0; count < kReaps; ++count) {
      info.si_pid = 0;
      if (waitid(P_ALL, 0, &info, kDeadChildren) != 0 || info.si_pid == 0) return false;
      if (info.si_pid == command_) command_ended(info);
      waitid(P_PID, static_cast<id_t>(info.si_pid), &info, WEXITED | WNOHANG);
    }
    return true;
  }

  void command_ended(const siginfo_t& info) noexcept {
    if (died_before_exec(command_)) state_.ran = false;
    record_end(state_, info, false);
    command_ = 0;
    tree_.set_command(0);
  }

  SharedState& state_;
  Exclusions excluded_;
  ProcessTree tree_;
  TreeEnding ending_;
  pid_t command_ = 0;
};

void Guard::DeleteSuccessor::operator()(Successor* successor) const {
  delete successor;
}

Guard::Guard(SharedState& state, util::Fd line)
    : state_(state), line_(std::move(line)), session_(getsid(0)) {
  add_children(older_);
}

Result<std::unique_ptr<Guard>> Guard::fork(const Setup& setup) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return cannot_start("socketpair", errno);
  }
  util::Fd theirs(ends[1]);
  std::unique_ptr<Guard> guard(new Guard(setup.state, util::Fd(ends[0])));
  util::BootTimer timer;
  if (timer.fd() < 0) return cannot_start("timerfd", errno);
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  util::Fd children(signalfd(-1, &ended, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!children) return cannot_start("signalfd", errno);
  // Signals are blocked from birth: a ^Z must not stop the guard before it has left our group.
  SignalBlock all;
  pid_t pid = _Fork();
  if (pid == 0) {
    guard_process({setup.child, setup.signals, setup.state, setup.until, guard->session_,
                   guard->line_.get(), theirs.get(), timer.fd(), children.get()});
  }
  if (pid < 0) return cannot_start("fork", errno);
  guard->pid_ = pid;
  return guard;
}

bool Guard::start(Grouping grouping, const std::vector<std::string>& environment) {
  GuardStart message;
  message.grouping = grouping_ = grouping;
  message.keys = pending_terminal_signals();
  message.entries = static_cast<uint32_t>(environment.size());
  size_t used = 0;
  for (const std::string& entry : environment) {
    const size_t size = entry.size() + 1;
    if (size > GuardStart::kRoom - used) return false;
    std::memcpy(message.text + used, entry.c_str(), size);
    used += size;
  }
  const size_t size = offsetof(GuardStart, text) + used;
  return send(line_.get(), &message, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

Guard::~Guard() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

pid_t Guard::command() const {
  const pid_t command = state_.command;
  return command > 0 && state_.guard == pid_ ? command : -1;
}

void Guard::read_reports() {
  char report;
  ssize_t got = 0;
  while ((got = recv(line_.get(), &report, 1, MSG_DONTWAIT)) > 0) continue;
  hung_up_ = got == 0 || (errno != EAGAIN && errno != EINTR);
}

// A guard that takes no order is ending the command, or is dead.
void Guard::send_order(const GuardOrder& order) const {
  send(line_.get(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Guard::signal(std::array<int, 2> signals) {
  send_order({GuardOrder::Kind::signal, signals, {}});
}

void Guard::terminate() {
  // A stopped one could not act on the first alone.
  send_order({GuardOrder::Kind::terminate, {SIGTERM, SIGCONT}, {}});
}

void Guard::pass_on(int key, std::array<pid_t, 2> have) {
  send_order({GuardOrder::Kind::terminal_signal, {key}, have});
}

void Guard::dismiss() {
  send_order({GuardOrder::Kind::dismiss, {}, {}});
}

void Guard::end() {
  if (std::exchange(ending_, true)) return;
  send_order({GuardOrder::Kind::end, {}, {}});
  progress_at_ = BootClock::now();
}

void Guard::tend(TimePoint now) {
  if (successor_) return successor_->round(now);
  if (over() || pid_ <= 0) return;
  siginfo_t info{};
  auto id = static_cast<id_t>(pid_);
  if (waitid(P_PID, id, &info, WEXITED | WSTOPPED | WNOHANG) == 0 && info.si_pid != 0) {
    if (info.si_code == CLD_STOPPED) {
      kill(pid_, SIGCONT);
    } else {
      pid_ = -1;
      if (over()) return;
      lost_ = !ending_;
      return take_over(now);
    }
  }
  if (!ending_ || given_up_ || state_.phase == CommandPhase::stuck) return;
  const uint64_t progress = state_.progress;
  if (progress != progress_) {
    progress_ = progress;
    progress_at_ = now;
  } else if (now - progress_at_ >= timing::kGuardProgress) {
    // Its children become ours when it is dead, which a debugger may delay.
    kill(pid_, SIGKILL);
    given_up_ = true;
  }
}

TimePoint Guard::due() const {
  if (successor_) return successor_->next_round();
  const bool watched = ending_ && !given_up_ && state_.phase != CommandPhase::stuck;
  if (over() || !watched) return TimePoint::max();
  return progress_at_ + timing::kGuardProgress;
}

void Guard::take_over(TimePoint now) {
  successor_.reset(new Successor(state_, grouping_, session_, older_));
  successor_->round(now);
}

}  // namespace rlock::run
