// Runs in rlock, on the main thread.

#include "run/guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "lock/timing.hpp"
#include "run/contain.hpp"
#include "util/boot_timer.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::run {

// rlock acting for a dead guard, whose processes have become children of rlock. It keeps the usual
// scheduling class, because otherwise a real-time command, which leaves the usual class a share of
// the processor, would starve it as its equal.
class Guard::Successor {
 public:
  Successor(SharedState& state, Grouping grouping, pid_t session, pid_t guard,
            const OlderChildren& older)
      : state_(state), tree_(grouping, session, state, &older), ending_(tree_, state) {
    state.exempt.add(guard);  // its tracer may not have released it yet
    if (util::proc_is_ours() && !state.command_ended()) tree_.set_command(state.command);
    ending_.begin(BootClock::now());
  }

  void round(TimePoint now) {
    if (ending_.round(now)) state_.phase = CommandPhase::over;
  }
  TimePoint next_round() const { return ending_.next_round(); }

 private:
  SharedState& state_;
  ProcessTree tree_;
  TreeEnding ending_;
};

Guard::Guard(const RunContext& context, util::Fd line)
    : state_(context.state),
      older_children_(context.older_children),
      line_(std::move(line)),
      session_(getsid(0)) {}

Result<std::unique_ptr<Guard>> Guard::fork(const RunContext& context,
                                           const std::vector<std::string>& environment) {
  const Contain contain = context.plan.contain;
  const bool contained = contain != Contain::no;
  Command command(context.plan.argv, environment);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return util::system_error("cannot start the guard: socketpair");
  }
  util::Fd theirs(ends[1]);
  std::unique_ptr<Guard> guard(new Guard(context, util::Fd(ends[0])));
  util::BootTimer timer;
  if (timer.fd() < 0) return util::system_error("cannot start the guard: timerfd");
  const sigset_t read = util::signal_set({SIGCHLD, SIGTERM, util::exemption_signal()});
  util::Fd signals(signalfd(-1, &read, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals) return util::system_error("cannot start the guard: signalfd");
  // Signals are blocked from the start: a ^Z must not stop the guard before it has left rlock's
  // group.
  util::SignalBlock all;
  const pid_t pid = contained ? fork_contained(contain, context.state, theirs.get()) : _Fork();
  if (pid == 0) {
    guard_process({context, command, guard->session_, guard->line_.get(), theirs.get(), timer.fd(),
                   signals.get()});
  }
  if (pid < 0) {
    return contained ? cannot_contain(contain) : util::system_error("cannot start the guard: fork");
  }
  guard->pid_ = pid;
  guard->pidfd_ = util::open_pidfd(pid);
  if (!contained) return guard;
  theirs.reset();
  TRY_STATUS(await_contained(contain, pid, guard->line_.get(), context.state));
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
  // A process that hangs in the kernel keeps the init of its namespace alive.
  pollfd end{pidfd_.get(), POLLIN, 0};
  while (pidfd_ && poll(&end, 1, static_cast<int>(timing::kDyingTime.count())) < 0) continue;
  while (waitpid(pid_, nullptr, pidfd_ ? WNOHANG : 0) < 0 && errno == EINTR) continue;
}

int Guard::fd() const {
  if (!hung_up_) return line_.get();
  return pid_ > 0 && !over() ? pidfd_.get() : -1;
}

short Guard::events() const {
  return static_cast<short>(orders_.empty() ? POLLIN : POLLIN | POLLOUT);
}

// If a tracer does not wait for the guard, rlock cannot reap it, but its children become children
// of rlock.
bool Guard::dead() const {
  if (pidfd_) {
    pollfd end{pidfd_.get(), POLLIN, 0};
    return poll(&end, 1, 0) > 0;
  }
  if (!hung_up_ || !util::proc_is_ours()) return false;
  auto stat = util::read_stat(pid_);
  return !stat || !stat->alive();
}

pid_t Guard::command() const {
  const pid_t command = state_.command;
  return command > 0 && state_.guard == pid_ ? command : command_;
}

// As the init of its namespace, the guard counts its processes differently from rlock. The command,
// which it started before all others, is the first of its children until it is reaped.
void Guard::find_command() {
  if (command_ > 0 || state_.command <= 0 || !util::proc_is_ours()) return;
  const util::Fd list(util::open_children_of(pid_));
  pid_t first = -1;
  auto take = [&](pid_t pid) {
    first = pid;
    return false;
  };
  if (list) util::for_each_child_in(list.get(), take);
  if (!state_.command_ended()) command_ = first;
}

void Guard::read_reports() {
  char report;
  ssize_t got = 0;
  while ((got = recv(line_.get(), &report, 1, MSG_DONTWAIT)) > 0) continue;
  const bool open = got != 0 && (errno == EAGAIN || errno == EINTR);
  if (!open && !std::exchange(hung_up_, true)) hung_up_at_ = BootClock::now();
  send_orders();
}

void Guard::order(const GuardOrder& order) {
  orders_.add(order);
  send_orders();
}

void Guard::send_orders() {
  for (; !orders_.empty(); orders_.remove_first()) {
    const GuardOrder& order = orders_.first();
    const bool sent = send(line_.get(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
    if (!sent && (errno == EAGAIN || errno == EINTR)) return;
  }
}

void Guard::terminate(bool but_nohup) {
  using Kind = GuardOrder::Kind;
  // With CONT, because a stopped process cannot act on TERM alone.
  order({but_nohup ? Kind::terminate_but_nohup : Kind::terminate, {SIGTERM, SIGCONT}, {}});
}

void Guard::pass_on(int key, std::array<pid_t, 2> have) {
  // The guard does not see groups outside its namespace.
  if (is_init()) have = {0, have[1] > 0 && have[1] == command() ? state_.command.load() : 0};
  order({GuardOrder::Kind::terminal_signal, {key}, have});
}

void Guard::end() {
  if (std::exchange(ending_, true)) return;
  order({GuardOrder::Kind::end, {}, {}});
  progress_at_ = BootClock::now();
}

void Guard::tend(TimePoint now) {
  if (successor_) return successor_->round(now);
  if (over() || pid_ <= 0) return;
  if (is_init()) find_command();
  siginfo_t info{};
  auto id = static_cast<id_t>(pid_);
  const bool changed =
      waitid(P_PID, id, &info, WEXITED | WSTOPPED | WNOHANG) == 0 && info.si_pid != 0;
  const bool stopped = changed && info.si_code == CLD_STOPPED;
  if (stopped) kill(pid_, SIGCONT);
  if ((changed && !stopped) || dead()) {
    if (changed && info.si_code != CLD_EXITED) killed_by_ = info.si_status;
    if (!over()) died(now);
    pid_ = -1;
    return;
  }
  if (state_.left) end();
  if (is_init()) tend_namespace(now);
  if (!ending_ || given_up_ || state_.phase == CommandPhase::stuck) return;
  const uint64_t progress = state_.progress;
  if (progress != progress_) {
    progress_ = progress;
    progress_at_ = now;
  } else if (now - progress_at_ >= timing::kGuardProgress) {
    // The guard's children become children of rlock when it is dead, which a debugger may delay.
    kill(pid_, SIGKILL);
    given_up_ = true;
    next_look_ = now + timing::kDyingTime;
  }
}

// The kernel ends the namespace before its init is dead. A process that hangs in the kernel, or a
// debugger that does not reap, delays that, and the guard itself can no longer report it.
void Guard::tend_namespace(TimePoint now) {
  if (hung_up_ && !ending_ && now - hung_up_at_ >= timing::kGuardProgress) {
    lost_ = true;
    end();
  }
  if (!given_up_ || now < next_look_) return;
  next_look_ = now + timing::kStuckPause;
  if (only_zombies_are_left()) {
    state_.phase = CommandPhase::over;
  } else if (now - progress_at_ >= timing::kNamespaceDyingTime) {
    state_.phase = CommandPhase::stuck;
  }
}

// An orphan of the namespace becomes a child of its init before its parent is a zombie. So no
// process lives if all listed children were found dead and the list then has no new child.
bool Guard::only_zombies_are_left() const {
  if (!util::proc_is_ours()) return false;
  std::set<pid_t> dead;
  bool alive = false;
  for (size_t fresh = 1; fresh > 0 && !alive;) {
    const util::Fd list(util::open_children_of(pid_));
    if (!list) return false;
    fresh = 0;
    util::for_each_child_in(list.get(), [&](pid_t pid) {
      if (!dead.insert(pid).second) return true;
      ++fresh;
      const auto stat = util::read_stat(pid);
      alive = stat && stat->alive();
      return !alive;
    });
  }
  return !alive;
}

std::string Guard::death() const {
  std::string text = "the guard process was killed";
  if (killed_by_ != 0) text = "the guard process was " + util::killed_by(killed_by_);
  if (killed_by_ != SIGSYS) return text;
  return text +
         ": a seccomp filter forbids a system call; in a systemd unit, allow @system-service by "
         "SystemCallFilter=";
}

TimePoint Guard::due() const {
  if (successor_) return successor_->next_round();
  if (over()) return TimePoint::max();
  if (hung_up_ && pid_ > 0 && !pidfd_) return BootClock::now() + timing::kGuardProgress;
  if (is_init() && hung_up_ && !ending_) return hung_up_at_ + timing::kGuardProgress;
  if (given_up_ && is_init()) return next_look_;
  if (!ending_ || given_up_ || state_.phase == CommandPhase::stuck) return TimePoint::max();
  return progress_at_ + timing::kGuardProgress;
}

void Guard::died(TimePoint now) {
  lost_ = lost_ || (!ending_ && !state_.left);
  if (is_init()) {
    state_.phase = CommandPhase::over;
    return;
  }
  successor_ = std::make_unique<Successor>(state_, grouping_, session_, pid_, older_children_);
  successor_->round(now);
}

}  // namespace rlock::run
