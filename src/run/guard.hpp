#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "run/guard_process.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::run {

// A small process between rlock and the command, whose parent it is. It knows the deadline too, and
// ends the command with all that descends from it when the state's kill time passes or when rlock
// is gone: what stops or kills rlock stops its renewals with it. It knows no server and never
// allocates. Where the guard itself is dead, all that descends from it has become rlock's to end.
class Guard {
 public:
  struct Setup {
    Child& child;  // needed for the fork alone
    const Signals& signals;
    SharedState& state;
    ReleaseAfter until;
    bool contain;  // as the init of a pid namespace of its own, with a /proc of that
  };

  // Forks it from the main thread; it waits for start(). ErrorKind::system when it cannot be
  // forked, or contained.
  static Result<std::unique_ptr<Guard>> fork(const Setup& setup);

  // Lets the guard start the command, with `environment` instead of the entries that were added to
  // the child's; empty: unchanged. False if the guard is dead or has no room for it; then nothing
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

  // Sends each signal to all processes of the command.
  void signal(std::array<int, 2> signals);
  // Notes a signal that all of them have got from the guard of an outer run.
  void note_signal(int number);
  // TERM to all processes of the command, which end() kills later. `but_nohup`: who ignores a
  // hangup is let go.
  void terminate(bool but_nohup = false);
  // Passes on a signal of the terminal, which these groups have, rlock's first, to a command that
  // has left them, or whose descendants alone are left.
  void pass_on(int key, std::array<pid_t, 2> have);
  // Lets the guard leave at the end of the run; what is left of the command's processes goes on.
  void dismiss();
  // Kills all processes of the command. After this tend() is to be called again and again.
  void end();

  // At each SIGCHLD, when fd() is readable and when it is due: resumes a stopped guard, kills one
  // that does not go on with an ending, and does the work of a dead one.
  void tend(TimePoint now);
  // When it is due; TimePoint::max() for never.
  TimePoint due() const;
  // Whether the guard died before its work was done, and not by rlock: the command is being ended.
  bool was_lost() const { return lost_; }
  // Whether the guard is dead, so that rlock ends and reaps its descendants.
  bool has_taken_over() const { return successor_ != nullptr; }

 private:
  class Successor;
  struct DeleteSuccessor {
    void operator()(Successor* successor) const;
  };

  Guard(SharedState& state, util::Fd line);
  bool over() const { return state_.phase == CommandPhase::over; }
  // Whether it is the init of a pid namespace: when it is dead, the kernel has ended all in there.
  bool is_init() const { return state_.guard == 1 && pid_ != 1; }
  bool dead() const;
  void find_command();
  void died(TimePoint now);
  void send_order(const GuardOrder& order) const;

  SharedState& state_;
  Grouping grouping_ = Grouping::own;
  util::Fd line_;
  pid_t pid_ = -1;      // -1: dead
  pid_t command_ = -1;  // as rlock counts
  util::Fd pidfd_;      // none before Linux 5.3
  pid_t session_;
  bool hung_up_ = false;  // nothing more is to be read: the guard has left, or is dead
  bool lost_ = false;
  bool ending_ = false;    // was asked to end it all
  bool given_up_ = false;  // and killed, since it did not
  uint64_t progress_ = 0;
  TimePoint progress_at_;
  std::unique_ptr<Successor, DeleteSuccessor> successor_;
};

// Whether --contain works on this host; ErrorKind::system says why not.
Status try_to_contain();

}  // namespace rlock::run
