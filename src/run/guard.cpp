// Runs in rlock, on the main thread.

#include "run/guard.hpp"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lock/timing.hpp"
#include "util/boot_timer.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::run {
namespace {

// As fork(), for the guard of a contained run: into new namespaces, where it enters them. In a user
// namespace, too, where those of processes are refused without.
pid_t fork_contained(SharedState& state, int line) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  clone_args args{};
  args.exit_signal = SIGCHLD;
  for (bool own_users : {false, true}) {
    args.flags = CLONE_NEWPID | CLONE_NEWNS | (own_users ? CLONE_NEWUSER : 0);
    const auto pid = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
    if (pid == 0) contain_guard(state, line, own_users, user, group);
    if (pid >= 0 || errno != EPERM) return pid;
  }
  return -1;
}

Error cannot_contain(int error) {
  return {
      ErrorKind::system,
      util::format("cannot contain the command: the kernel refuses a pid namespace with a /proc "
                   "of its own: {}: run rlock as root, allow users to make user namespaces, or "
                   "leave out --contain",
                   std::strerror(error))};
}

// Until the guard at the other end of `line` is in its namespaces.
Status await_contained(int line, SharedState& state) {
  char ready;
  ssize_t got = 0;
  while ((got = recv(line, &ready, 1, 0)) < 0 && errno == EINTR) continue;
  if (got == 1) return Done{};
  const int error = state.start_error.exchange(0);
  return cannot_contain(error != 0 ? error : ECHILD);
}

}  // namespace

// rlock in the place of a dead guard: its processes have become children of rlock. It stays in the
// usual class: a command of real time, which leaves that a share of the processor, would starve it
// as its equal.
class Guard::Successor {
 public:
  Successor(SharedState& state, Grouping grouping, pid_t session, pid_t guard)
      : state_(state), tree_(grouping, session, state), ending_(tree_, state) {
    state.exempt.add(guard);  // its tracer may not have let go of it yet
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

Guard::Guard(SharedState& state, util::Fd line)
    : state_(state), line_(std::move(line)), session_(getsid(0)) {}

Result<std::unique_ptr<Guard>> Guard::fork(const RunContext& context,
                                           const std::vector<std::string>& environment) {
  Child child(context.plan.argv, environment, context.plan.front);
  const bool contain = context.plan.contain;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return util::system_error("cannot start the guard: socketpair");
  }
  util::Fd theirs(ends[1]);
  std::unique_ptr<Guard> guard(new Guard(context.state, util::Fd(ends[0])));
  util::BootTimer timer;
  if (timer.fd() < 0) return util::system_error("cannot start the guard: timerfd");
  const sigset_t read = util::signal_set({SIGCHLD, util::exemption_signal()});
  util::Fd signals(signalfd(-1, &read, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals) return util::system_error("cannot start the guard: signalfd");
  // Signals are blocked from birth: a ^Z must not stop the guard before it has left our group.
  util::SignalBlock all;
  const pid_t pid = contain ? fork_contained(context.state, theirs.get()) : _Fork();
  if (pid == 0) {
    guard_process({context, child, guard->session_, guard->line_.get(), theirs.get(), timer.fd(),
                   signals.get()});
  }
  if (pid < 0)
    return contain ? cannot_contain(errno) : util::system_error("cannot start the guard: fork");
  guard->pid_ = pid;
  guard->pidfd_ = util::open_pidfd(pid);
  if (!contain) return guard;
  theirs.reset();
  TRY_STATUS(await_contained(guard->line_.get(), context.state));
  return guard;
}

Status try_to_contain() {
  TRY(auto state, map_shared_state());
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return util::system_error("cannot start the guard: socketpair");
  }
  util::Fd line(ends[0]);
  util::Fd theirs(ends[1]);
  util::SignalBlock all;
  const pid_t pid = fork_contained(*state, theirs.get());
  if (pid == 0) _exit(0);
  if (pid < 0) return cannot_contain(errno);
  theirs.reset();
  Status contained = await_contained(line.get(), *state);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  return contained;
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
  // What hangs in the kernel keeps the init of its namespace.
  pollfd end{pidfd_.get(), POLLIN, 0};
  while (pidfd_ && poll(&end, 1, static_cast<int>(timing::kDyingTime.count())) < 0) continue;
  while (waitpid(pid_, nullptr, pidfd_ ? WNOHANG : 0) < 0 && errno == EINTR) continue;
}

int Guard::fd() const {
  if (!hung_up_) return line_.get();
  return pid_ > 0 && !over() ? pidfd_.get() : -1;
}

// A tracer that does not wait for it keeps us from reaping it, but not its children from becoming
// ours.
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

// As the init of its namespace, the guard counts its processes in another way than rlock. The
// command, which it started before all others, is the first of its children until it is reaped.
void Guard::find_command() {
  if (command_ > 0 || state_.command <= 0 || !util::proc_is_ours()) return;
  const util::Fd folder(util::open_process(pid_));
  const util::Fd tasks(openat(folder.get(), "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const util::Fd list(util::open_children(tasks.get(), pid_));
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
  hung_up_ = got == 0 || (errno != EAGAIN && errno != EINTR);
}

void Guard::order(const GuardOrder& order) const {
  send(line_.get(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Guard::terminate(bool but_nohup) {
  using Kind = GuardOrder::Kind;
  // A stopped one could not act on the first alone.
  order({but_nohup ? Kind::terminate_but_nohup : Kind::terminate, {SIGTERM, SIGCONT}, {}});
}

void Guard::pass_on(int key, std::array<pid_t, 2> have) {
  // Outside of its namespace the guard sees no groups.
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
    if (!over()) died(now);
    pid_ = -1;
    return;
  }
  if (state_.left) end();
  if (is_init() && given_up_ && now - progress_at_ >= timing::kNamespaceDyingTime) {
    state_.phase = CommandPhase::stuck;  // the guard itself cannot say so any more
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
  if (over()) return TimePoint::max();
  if (hung_up_ && pid_ > 0 && !pidfd_) return BootClock::now() + timing::kGuardProgress;
  if (!ending_ || state_.phase == CommandPhase::stuck) return TimePoint::max();
  if (given_up_) return is_init() ? progress_at_ + timing::kNamespaceDyingTime : TimePoint::max();
  return progress_at_ + timing::kGuardProgress;
}

void Guard::died(TimePoint now) {
  lost_ = !ending_ && !state_.left;
  if (is_init()) {
    state_.phase = CommandPhase::over;
    return;
  }
  successor_ = std::make_unique<Successor>(state_, grouping_, session_, pid_);
  successor_->round(now);
}

}  // namespace rlock::run
