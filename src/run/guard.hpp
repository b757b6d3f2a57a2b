// Runs in rlock, on the main thread; guard_process() in the guard.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "run/command.hpp"
#include "run/guard_order.hpp"
#include "run/process_tree.hpp"
#include "run/run.hpp"
#include "run/shared_state.hpp"
#include "run/signals.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::run {

// The first message to the guard: the lock is held, so the guard starts the command.
struct GuardStart {
  static constexpr size_t kRoom = 4096;

  Grouping grouping = Grouping::own;
  uint32_t keys = 0;     // pending_terminal_signals() of rlock, which the command has not received
  uint32_t entries = 0;  // how many environment entries replace those of the command; 0: none
  char text[kRoom];      // the entries, each with its final zero; only the used part is sent
};

// The descriptors are made before the fork, while an error can still be reported.
struct GuardTask {
  const RunContext& context;
  Command& command;
  pid_t session;   // rlock's
  int rlocks_end;  // of `line`: the guard closes it
  int line;   // receives orders, sends a byte when the state has changed; at its end rlock is gone
  int timer;  // a timerfd of CLOCK_BOOTTIME
  int signals_fd;  // a signalfd of SIGCHLD, SIGTERM and util::exemption_signal()
};

// The guard's process, which begins with all signals blocked: waits for the GuardStart, starts the
// command and watches it until it has exited. If rlock exits before the GuardStart, the guard just
// exits. Everything in it is async-signal-safe, because another thread of rlock may hold the
// allocator.
[[noreturn]] void guard_process(const GuardTask& task) noexcept;

// A small process between rlock and the command, and the command's parent. It stops the command and
// all its descendants when the state's kill time passes or when rlock is gone. If the guard itself
// dies, rlock stops them. [docs/SUPERVISION.md, "The guard"]
class Guard {
 public:
  // Forks the guard from the main thread; it waits for start(). ErrorKind::system if it cannot be
  // forked or contained. `environment`: entries to add to that of the command.
  static Result<std::unique_ptr<Guard>> fork(const RunContext& context,
                                             const std::vector<std::string>& environment);

  // Lets the guard start the command, with `environment` instead of the one passed to fork();
  // empty: unchanged. Returns false, and starts nothing, if the guard is dead or has no room for
  // it.
  bool start(Grouping grouping, const std::vector<std::string>& environment = {});

  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  // Kills and reaps the guard.
  ~Guard();

  pid_t pid() const { return pid_; }
  // The command's pid in rlock's pid namespace; -1 if it has none there, or if it is not known yet.
  pid_t command() const;
  // Has the events() if the state has changed, or there is room for orders that wait; -1 if no more
  // changes can come.
  int fd() const;
  short events() const;
  // Also sends the orders that wait.
  void read_reports();

  // Sends an order. If the guard is behind, the order waits until read_reports(), and the most
  // urgent order goes first. It is lost if the guard is dead.
  void order(const GuardOrder& order);
  // Sends TERM to all processes of the command; end() kills them later. `but_nohup`: exempts
  // processes that ignore a hangup.
  void terminate(bool but_nohup = false);
  // Passes on a signal of the terminal, which the groups `have` (rlock's first) have received, to a
  // command that has left these groups, or to its descendants if only they are left.
  void pass_on(int key, std::array<pid_t, 2> have);
  // Kills all processes of the command. After this, call tend() repeatedly.
  void end();

  // Call this on SIGCHLD, when fd() is readable, and at due(). Resumes a stopped guard, kills a
  // guard that makes no progress with stopping the tree, and takes over from a dead guard.
  void tend(TimePoint now);
  // When tend() is due; TimePoint::max() for never.
  TimePoint due() const;
  // Whether the guard died before its work was done, without rlock killing it: rlock is then
  // stopping the command.
  bool was_lost() const { return lost_; }
  // How the lost guard died, for a message.
  std::string death() const;
  // Whether the guard is dead, so that rlock stops and reaps its descendants.
  bool has_taken_over() const { return successor_ != nullptr; }

 private:
  class Successor;

  Guard(const RunContext& context, util::Fd line);
  bool over() const { return state_.phase == CommandPhase::over; }
  // Whether the guard is the init of a pid namespace: if it dies, the kernel kills all processes in
  // the namespace.
  bool is_init() const { return state_.guard == 1 && pid_ != 1; }
  void send_orders();
  bool dead() const;
  void find_command();
  bool only_zombies_are_left() const;
  void tend_namespace(TimePoint now);
  void died(TimePoint now);

  SharedState& state_;
  const OlderChildren& older_children_;
  Grouping grouping_ = Grouping::own;
  util::Fd line_;
  OrderQueue orders_;
  pid_t pid_ = -1;      // -1: dead
  pid_t command_ = -1;  // in rlock's pid namespace
  util::Fd pidfd_;      // none before Linux 5.3
  pid_t session_;
  bool hung_up_ = false;  // the guard has exited or is dead: nothing more can be read
  TimePoint hung_up_at_;
  bool lost_ = false;
  int killed_by_ = 0;      // the signal; 0: none, or it is not known
  bool ending_ = false;    // was ordered to kill all processes
  bool given_up_ = false;  // and was killed, because it did not do so
  uint64_t progress_ = 0;
  TimePoint progress_at_;
  TimePoint next_look_;  // when to check next what is left of the namespace
  std::unique_ptr<Successor> successor_;
};

}  // namespace rlock::run
