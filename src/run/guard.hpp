// Runs in rlock, on the main thread; guard_process() in the guard.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "run/child.hpp"
#include "run/process_tree.hpp"
#include "run/run.hpp"
#include "run/shared_state.hpp"
#include "run/signals.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::run {

// What rlock orders its guard to do; a message each.
struct GuardOrder {
  // terminal_signal: the terminal's driver sent it to the groups `skip`; rlock's group is first.
  // reached: the guard of an outer run has already sent it to all. terminate: begins to stop them,
  // which `end` makes a kill. terminate_but_nohup: the same, but processes that ignore HUP are
  // exempt.
  enum class Kind {
    signal,
    reached,
    terminate,
    terminate_but_nohup,
    terminal_signal,
    end,
    dismiss
  };
  Kind kind = Kind::end;
  std::array<int, 2> signals{};  // to the whole tree; 0: none
  std::array<pid_t, 2> skip{};   // but not to these groups, which have them already; 0: none
};

// The first message to the guard: the lock is held, and the command is to start.
struct GuardStart {
  static constexpr size_t kRoom = 4096;

  Grouping grouping = Grouping::own;
  uint32_t keys = 0;     // pending_terminal_signals() of rlock; the command does not have them
  uint32_t entries = 0;  // of the environment, which replace those of the child; 0: it stays
  char text[kRoom];      // they, each with its final zero; only what is used is sent
};

// The descriptors are made before the fork, where an error can still be reported.
struct GuardTask {
  const RunContext& context;
  Child& child;
  pid_t session;   // rlock's
  int rlocks_end;  // of `line`: to be closed
  int line;   // orders come in, a byte goes out when the state has changed; its end: rlock is gone
  int timer;  // a timerfd of CLOCK_BOOTTIME
  int signals_fd;  // a signalfd of SIGCHLD and of util::exemption_signal()
};

// The guard after its fork, born with all signals blocked: waits for the GuardStart, starts the
// command and watches it until it has exited. If rlock is gone before, the guard just exits.
// Async-signal-safe throughout: another thread of rlock may hold the allocator.
[[noreturn]] void guard_process(const GuardTask& task) noexcept;

// A small process between rlock and the command, whose parent it is. It ends the command with all
// that descends from it when the state's kill time passes or when rlock is gone. When the guard
// itself is dead, rlock does that. [docs/SUPERVISION.md, "The guard"]
class Guard {
 public:
  // Forks it from the main thread; it waits for start(). ErrorKind::system when it cannot be
  // forked, or contained. `environment`: what is added to that of the command.
  static Result<std::unique_ptr<Guard>> fork(const RunContext& context,
                                             const std::vector<std::string>& environment);

  // Lets the guard start the command, with `environment` instead of what fork() was given; empty:
  // unchanged. False if the guard is dead or has no room for it; then nothing
  // starts.
  bool start(Grouping grouping, const std::vector<std::string>& environment = {});

  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  // Ends and reaps it.
  ~Guard();

  pid_t pid() const { return pid_; }
  // The command's pid in rlock's pid namespace; -1 if it has none there, or it is not known yet.
  pid_t command() const;
  // Readable when the state has changed; -1 where nothing more can come.
  int fd() const;
  void read_reports();

  // A guard that takes no order is ending the command, or is dead.
  void order(const GuardOrder& order) const;
  // TERM to all processes of the command, which end() kills later. `but_nohup`: who ignores a
  // hangup is let go.
  void terminate(bool but_nohup = false);
  // Passes on a signal of the terminal, which these groups have, rlock's first, to a command that
  // has left them, or whose descendants alone are left.
  void pass_on(int key, std::array<pid_t, 2> have);
  // Kills all processes of the command. After this tend() is to be called again and again.
  void end();

  // Call it on SIGCHLD, when fd() is readable, and at due(). Resumes a stopped guard, kills a guard
  // that makes no progress with an ending, and takes over from a dead guard.
  void tend(TimePoint now);
  // When it is due; TimePoint::max() for never.
  TimePoint due() const;
  // Whether the guard died before its work was done, and not by rlock: the command is being ended.
  bool was_lost() const { return lost_; }
  // How the lost guard died, for a message.
  std::string death() const;
  // Whether the guard is dead, so that rlock ends and reaps its descendants.
  bool has_taken_over() const { return successor_ != nullptr; }

 private:
  class Successor;

  Guard(const RunContext& context, util::Fd line);
  bool over() const { return state_.phase == CommandPhase::over; }
  // Whether it is the init of a pid namespace: when it is dead, the kernel has ended all in there.
  bool is_init() const { return state_.guard == 1 && pid_ != 1; }
  bool dead() const;
  void find_command();
  bool only_zombies_are_left() const;
  void tend_namespace(TimePoint now);
  void died(TimePoint now);

  SharedState& state_;
  const OlderChildren& older_children_;
  Grouping grouping_ = Grouping::own;
  util::Fd line_;
  pid_t pid_ = -1;      // -1: dead
  pid_t command_ = -1;  // as rlock counts
  util::Fd pidfd_;      // none before Linux 5.3
  pid_t session_;
  bool hung_up_ = false;  // nothing more is to be read: the guard has left, or is dead
  TimePoint hung_up_at_;
  bool lost_ = false;
  int killed_by_ = 0;      // the signal; 0: none, or it is not known
  bool ending_ = false;    // was asked to end it all
  bool given_up_ = false;  // and killed, since it did not
  uint64_t progress_ = 0;
  TimePoint progress_at_;
  TimePoint next_look_;  // at what is left of the namespace
  std::unique_ptr<Successor> successor_;
};

}  // namespace rlock::run
