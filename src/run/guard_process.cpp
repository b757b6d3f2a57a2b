// Runs in the guard, which has one thread and allocates nothing.

#include "run/guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "lock/timing.hpp"
#include "run/stop_requests.hpp"
#include "util/boot_timer.hpp"
#include "util/process.hpp"

namespace rlock::run {
namespace {

// The numbers of the descriptors that the guard keeps, so that it can close the rest in one call.
constexpr int kLine = 0;
constexpr int kTimer = 1;
constexpr int kSignals = 2;

void overwrite_arguments() noexcept {
  auto stat = util::read_stat(getpid());
  if (!stat || stat->arguments == 0 || stat->arguments_end <= stat->arguments) return;
  auto* text = reinterpret_cast<char*>(stat->arguments);
  size_t room = stat->arguments_end - stat->arguments;
  std::memset(text, 0, room);
  std::memcpy(text, util::kGuardName, std::min(room - 1, sizeof util::kGuardName - 1));
}

// Closes above all the connection to the server, which the guard would keep open after rlock exits.
// Descriptors that were inherited through exec belong to the command.
void close_rlocks_descriptors(const GuardTask& task) noexcept {
  util::Fd folder(open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return;
  util::for_each_number_in(folder.get(), [&](int fd) {
    const bool kept = fd <= 2 || fd == folder.get() || fd == task.line || fd == task.timer ||
                      fd == task.signals_fd;
    if (!kept && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) close(fd);
    return true;
  });
}

// Waits until rlock has the lock, or has exited.
const GuardStart& await_start(const GuardTask& task) noexcept {
  static GuardStart start;
  constexpr auto kHeader = static_cast<ssize_t>(offsetof(GuardStart, text));
  ssize_t got = 0;
  while ((got = recv(task.line, &start, sizeof start, 0)) < 0 && errno == EINTR) continue;
  if (got < kHeader) _exit(0);
  if (start.entries > 0) task.command.set_added(start.text, start.entries);
  return start;
}

void take_precedence() noexcept {
  sched_param first{};
  first.sched_priority = sched_get_priority_max(SCHED_FIFO);
  sched_setscheduler(0, SCHED_FIFO, &first);
}

class GuardProcess {
 public:
  GuardProcess(const GuardTask& task, const GuardStart& start)
      : task_(task),
        start_(start),
        state_(task.context.state),
        tree_(start.grouping, task.session, task.context.state),
        ending_(tree_, task.context.state),
        requests_(task.context.plan.kill_after),
        line_(task.line) {}

  [[noreturn]] void run() noexcept {
    start_command();
    settle();
    await_exec();
    close_inherited();
    while (true) {
      if (!ending_.under_way()) reap();
      act(BootClock::now());
      wait();
    }
  }

 private:
  void start_command() noexcept {
    // Before the command starts, because it may immediately start processes that ask guards to
    // leave them alive.
    prctl(PR_SET_NAME, util::kGuardName);
    // A pipe that the exec closes. It is made here, because a copy in rlock, which may be stopped
    // at any moment, would keep it open.
    int before_exec[2];
    pid_t pid = 0;
    if (pipe2(before_exec, O_CLOEXEC) == 0) {
      pid = task_.command.start(task_.context.signals, state_, start_.grouping);
      close(before_exec[1]);
      before_exec_ = before_exec[0];
    }
    if (pid <= 0) {
      state_.start_error = errno;
      finish_and_exit();
    }
    tree_.set_command(pid);
    // A signal that the terminal sent before the fork is pending in rlock or in the guard, but not
    // in the command. Before its exec the command has no handlers, so a second signal is harmless.
    if (start_.grouping == Grouping::callers)
      send_terminal_signals(pid, start_.keys | pending_terminal_signals());
  }

  // The command is in rlock's session: if the guard had left it before, the command would have left
  // it, too.
  void settle() noexcept {
    setsid();
    dup2(task_.line, kLine);
    dup2(task_.timer, kTimer);
    dup2(task_.signals_fd, kSignals);
    line_ = kLine;
    timer_.emplace(util::Fd(kTimer));
    settle_at_ = BootClock::now() + timing::kGuardSettle;
  }

  void close_inherited() noexcept {
    util::close_all_from(kSignals + 1);
    if (util::proc_is_ours()) overwrite_arguments();
  }

  // Until its exec the command shares the guard's memory, errno included, so the guard makes only
  // calls that do not fail. The exec may hang, for example on a dead file server, and the command
  // still has to be stopped in time.
  void await_exec() noexcept {
    while (true) {
      const bool ending = ending_.under_way();
      timer_->arm(state_.kill_at());
      pollfd fds[3] = {{before_exec_, POLLIN, 0},
                       {rlock_gone_ ? -1 : kLine, POLLIN, 0},
                       {ending ? -1 : kTimer, POLLIN, 0}};
      poll(fds, 3, -1);
      if (fds[0].revents != 0) break;
      if (fds[1].revents != 0) read_orders();
      while (!orders_.empty()) handle_order();
      const TimePoint now = BootClock::now();
      if (now >= state_.kill_at()) end_by_ourselves(now, true);
      if (ending_.under_way()) kill(command(), SIGKILL);
    }
    executing_ = false;
    state_.phase = CommandPhase::running;
  }

  // The byte is lost if rlock is gone, or has not read many earlier bytes.
  void report() noexcept { send(line_, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT); }

  [[noreturn]] void finish_and_exit() noexcept {
    state_.phase = CommandPhase::over;
    report();
    _exit(0);
  }

  // The kernel kills all processes of the namespace whose init is the guard, at the same moment,
  // before the guard is dead.
  [[noreturn]] void leave() noexcept {
    state_.left = true;
    _exit(0);
  }

  // Whether the command has exited and rlock decides about the remaining processes.
  bool command_is_outlived() const noexcept { return state_.phase == CommandPhase::outlived; }
  // The same, with no stop under way: if rlock is stopped until the lease expires, the remaining
  // processes are left alone. There is nothing to do unless rlock gives an order, or is gone.
  bool leftovers_may_stay() const noexcept {
    return command_is_outlived() && !is_init_ && requests_.why_leftovers_end(state_) == 0;
  }

  // Handles leftover processes. Daemons keep running after a run that ended normally, but not if
  // rlock was killed together with the command; rlock reports which case it is.
  void look_at_leftovers(TimePoint now) noexcept {
    if (tree_.empty()) finish_and_exit();
    if (task_.context.plan.until == ReleaseAfter::descendants) return;
    if (!terminating_) {
      if (state_.failed() && !is_init_) tree_.find_leftovers(state_.leftovers);
      state_.phase = CommandPhase::outlived;
      return report();
    }
    if (is_init_ || now < next_look_) return;  // a namespace ends as a whole
    // A process of another user did not get the signal, and would keep running next to the next
    // holder.
    const bool all_seen = tree_.find_refusing(found_);
    next_look_ = BootClock::now() + timing::kRefusedLook;
    if (found_.size() > 0 || !all_seen) report_survivors(CommandPhase::refused);
  }

  void reap() noexcept {
    check_for_stop();
    tree_.reap();
  }

  // The kernel stops a command that shares rlock's group together with rlock. If the command left
  // the group, the guard has to stop it.
  void check_for_stop() noexcept {
    if (start_.grouping == Grouping::own || command() <= 0) return;
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(command()), &info, WSTOPPED | WNOHANG);
    if (info.si_pid == 0) return;
    ++state_.stops;
    report();
  }

  void act(TimePoint now) noexcept {
    if (now >= state_.count_at()) count_processes(now);
    if (now >= kill_at()) end_by_ourselves(now, true);
    if (ending_.under_way()) return continue_ending(now);
    if (command() == 0 && !command_is_outlived()) look_at_leftovers(now);
  }

  TimePoint kill_at() const noexcept {
    const TimePoint at = state_.kill_at();
    return at == TimePoint::max() ? at : at - margin_;
  }

  // Called when no renewal has succeeded for most of a lease.
  void count_processes(TimePoint now) noexcept {
    const TimePoint count_at = state_.count_at();
    if (counted_for_ == count_at || ending_.under_way() || leftovers_may_stay()) return;
    counted_for_ = count_at;
    // A renewal may come between the two reads.
    const Nanos most = std::max(Nanos(0), Nanos(state_.kill_at() - count_at));
    margin_ = std::min(most, tree_.dying_time(now + timing::kCountTime).value_or(most));
  }

  void end_by_ourselves(TimePoint now, bool lease_over) noexcept {
    if (ending_.under_way()) return;
    if (lease_over && leftovers_may_stay()) return;
    if (lease_over && command_is_outlived() && requests_.why_leftovers_end(state_) == SIGHUP) {
      tree_.spare_nohup(now + timing::kCountTime);
    }
    state_.lease_over = lease_over;
    begin_ending(now);
  }

  // Reports anew the processes that only received a signal before, and refused it.
  void begin_ending(TimePoint now) noexcept {
    if (ending_.under_way()) return;
    if (is_init_) leave();
    const bool refused = state_.phase == CommandPhase::refused;
    if (refused || command_is_outlived()) state_.phase = CommandPhase::running;
    reported_ = false;
    ending_.begin(now);
  }

  void continue_ending(TimePoint now) noexcept {
    if (ending_.round(now)) finish_and_exit();
    const bool stuck = state_.phase == CommandPhase::stuck;
    if (stuck && !std::exchange(reported_, true)) report();
    if (!rlock_gone_ || !stuck) return;
    const bool lease_over = state_.kill_at() == TimePoint::max() ||
                            now >= state_.kill_at() + timing::kOrphanedGuardTime;
    const bool hopeless = now >= ending_.progressed_at() + timing::kOrphanedGuardTime;
    if (state_.survivors.all_refused() || (lease_over && hopeless)) _exit(0);
  }

  void report_survivors(CommandPhase phase) noexcept {
    state_.survivors.copy(found_);
    state_.phase = phase;
    if (!std::exchange(reported_, true)) report();
  }

  TimePoint next_step() const noexcept {
    TimePoint next = settled_ ? TimePoint::max() : settle_at_;
    if (ending_.under_way()) return std::min(next, ending_.next_round());
    if (leftovers_may_stay()) return next;
    const bool looks =
        !is_init_ && command() == 0 && task_.context.plan.until == ReleaseAfter::command;
    if (looks && terminating_) next = std::min(next, next_look_);
    if (counted_for_ != state_.count_at()) next = std::min(next, state_.count_at());
    return std::min(next, kill_at());
  }

  void wait() noexcept {
    timer_->arm(next_step());
    pollfd fds[3] = {
        {rlock_gone_ ? -1 : kLine, POLLIN, 0}, {kTimer, POLLIN, 0}, {kSignals, POLLIN, 0}};
    poll(fds, 3, orders_.empty() ? -1 : 0);
    if (fds[0].revents != 0) read_orders();
    if (!orders_.empty()) handle_order();
    read_signals();  // also from processes that asked just before a stop
    if (!settled_ && BootClock::now() >= settle_at_) lock_memory();
  }

  void exempt(pid_t pid) noexcept {
    if (pid > 1 && (!util::proc_is_ours() || util::descends_from(pid, getpid())))
      state_.exempt.add(pid);
  }

  // Refusals are harmless: the guard may then have to wait, for a page or behind a fork storm of
  // the command.
  void lock_memory() noexcept {
    settled_ = true;
    tree_.open();
    if (util::filter_allows([]() noexcept { mlockall(0); })) mlockall(MCL_CURRENT);
    const bool allowed = util::filter_allows(take_precedence);
    if (allowed) take_precedence();
    state_.may_take_precedence = allowed;
    report();
  }

  void read_signals() noexcept {
    const auto exemption = static_cast<uint32_t>(util::exemption_signal());
    signalfd_siginfo info;
    while (read(kSignals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const bool sent_by_kill = info.ssi_code == SI_USER;  // the kernel reports the sender
      const auto sender = static_cast<pid_t>(info.ssi_pid);
      if (info.ssi_signo == exemption && sent_by_kill) exempt(sender);
      if (info.ssi_signo == SIGTERM) count_term(sender);
    }
  }

  // rlock passes it on, but not if it comes from the command's own processes. 0: the sender is
  // outside the guard's pid namespace.
  void count_term(pid_t sender) noexcept {
    if (sender > 0 && util::proc_is_ours() && util::descends_from(sender, getpid())) return;
    ++state_.terms;
    report();
  }

  // Reads all orders from the readable line, so that none fills it, and the most urgent one need
  // not wait for the others.
  void read_orders() noexcept {
    GuardOrder order;
    ssize_t got = 0;
    while ((got = recv(kLine, &order, sizeof order, MSG_DONTWAIT)) > 0) {
      if (order.kind == GuardOrder::Kind::dismiss) _exit(0);
      orders_.add(order);
    }
    if (got < 0) return;
    rlock_gone_ = true;
    end_by_ourselves(BootClock::now(), false);
  }

  void handle_order() noexcept {
    const GuardOrder order = orders_.first();
    orders_.remove_first();
    if (order.kind == GuardOrder::Kind::end) return begin_ending(BootClock::now());
    note(order);
    if (order.kind == GuardOrder::Kind::terminal_signal && command_got_signal(order)) return;
    const bool sparing = order.kind == GuardOrder::Kind::terminate_but_nohup;
    terminating_ = terminating_ || sparing || order.kind == GuardOrder::Kind::terminate;
    // A command that has not begun needs no time to clean up, and must not begin any more.
    if (executing_ && terminating_) return begin_ending(BootClock::now());
    if (sparing) tree_.spare_nohup(BootClock::now() + timing::kSignalTime);
    if (terminating_ && command_is_outlived()) state_.phase = CommandPhase::running;
    if (executing_ || order.kind == GuardOrder::Kind::command_signal) {
      signal_command(order.signals);
    } else if (order.kind != GuardOrder::Kind::reached) {
      tree_.signal(order.signals, order.skip,
                   std::min(BootClock::now() + timing::kSignalTime, state_.kill_at()));
    }
    // A HUP may ask for something other than to stop.
    const int number = order.signals[0];
    if (asks_to_stop(number) && number != SIGHUP && command() > 0) check_may_signal();
  }

  void note(const GuardOrder& order) noexcept {
    using Kind = GuardOrder::Kind;
    const TimePoint now = BootClock::now();
    const int number = order.signals[0];
    switch (order.kind) {
      case Kind::signal:
      case Kind::command_signal:
      case Kind::reached:
        requests_.note(number, now);
        break;
      case Kind::terminal_signal:
        requests_.note_key(number, now);
        break;
      default:
        break;
    }
  }

  // With sigqueue(3), by which a nested rlock knows that its own command has not got the signal.
  void signal_command(const std::array<int, 2>& signals) noexcept {
    for (int number : signals) {
      if (number == 0 || command() <= 0) continue;
      // At a limit on pending signals, kill(2) sends a real-time signal without its sender.
      if (sigqueue(command(), number, {}) != 0) kill(command(), number);
    }
  }

  // The command itself may run as another user, for example through sudo.
  void check_may_signal() noexcept {
    if (executing_ || kill(command(), 0) == 0 || errno != EPERM) return;
    tree_.find_refusing(found_);
    report_survivors(CommandPhase::refused);
  }

  // Only its parent knows for certain whether the command is alive. 0: the group is outside the
  // guard's pid namespace.
  bool command_got_signal(const GuardOrder& order) noexcept {
    if (executing_) return true;
    reap();
    // The command may have died of this key.
    if (command() == 0) return task_.context.plan.until == ReleaseAfter::command;
    const pid_t group = getpgid(command());
    return group == 0 || group == order.skip[0];
  }

  pid_t command() const noexcept { return tree_.command(); }  // 0: reaped

  const GuardTask task_;
  const GuardStart& start_;
  const bool is_init_ = getpid() == 1;
  SharedState& state_;
  ProcessTree tree_;
  TreeEnding ending_;
  OrderQueue orders_;
  StopRequests requests_;
  Survivors found_;  // processes that refused a signal
  int line_;
  int before_exec_ = -1;
  bool executing_ = true;  // the command is on its way to its exec
  bool settled_ = false;
  bool rlock_gone_ = false;
  bool terminating_ = false;  // rlock is stopping the command
  bool reported_ = false;     // rlock was told that some processes cannot be stopped
  Nanos margin_{0};           // in addition to what a small tree needs
  TimePoint counted_for_;
  TimePoint settle_at_;
  TimePoint next_look_;
  std::optional<util::BootTimer> timer_;
};

}  // namespace

void guard_process(const GuardTask& task) noexcept {
  close(task.rlocks_end);  // otherwise neither the guard nor the command before its exec would
                           // notice that rlock is gone
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Lets the guard continue if it was stopped before rlock was killed.
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  close_rlocks_descriptors(task);
  const GuardStart& start = await_start(task);
  task.context.state.guard = getpid();
  // Static, because the tree is too large for a stack, and the guard must not allocate.
  alignas(GuardProcess) static std::byte room[sizeof(GuardProcess)];
  (new (room) GuardProcess(task, start))->run();
}

}  // namespace rlock::run
