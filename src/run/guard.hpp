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
  };

  // Forks it from the main thread; it waits for start(). ErrorKind::system when it cannot be
  // forked.
  static Result<std::unique_ptr<Guard>> fork(const Setup& setup);

  // Lets it start the command, with `environment` in the place of what was added to the child's;
  // empty: as it is. False where the guard is dead or has no room for that: then nothing starts.
  bool start(Grouping grouping, const std::vector<std::string>& environment = {});

  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  // Ends and reaps it.
  ~Guard();

  pid_t pid() const { return pid_; }
  // The command's number as rlock counts; -1 where that is another one, or not known yet.
  pid_t command() const;
  // Readable when the state has changed.
  int fd() const { return line_.get(); }
  void read_reports();
  // Nothing more is to be read: the guard has left, or is dead.
  bool hung_up() const { return hung_up_; }

  // Sends each signal to all processes of the command.
  void signal(std::array<int, 2> signals);
  // TERM to all processes of the command; what outlives it is killed when the command has ended.
  void terminate();
  // Passes on a signal of the terminal, which these groups have, rlock's first, to a command that
  // has left them, or whose descendants alone are left.
  void pass_on(int key, std::array<pid_t, 2> have);
  // The run has come to its end: what is left of the command's processes goes on.
  void dismiss();
  // Kills all processes of the command. After this tend() is to be called again and again.
  void end();

  // At each SIGCHLD, and when it is due: resumes a stopped guard, kills one that does not go on
  // with an ending, and does the work of a dead one.
  void tend(TimePoint now);
  // When it is due; TimePoint::max() for never.
  TimePoint due() const;
  // It died before its work was done, by another hand than ours: the command is being ended.
  bool was_lost() const { return lost_; }
  // It is dead, and all that descends from it is ours to end and to reap, here.
  bool has_taken_over() const { return successor_ != nullptr; }

 private:
  class Successor;
  struct DeleteSuccessor {
    void operator()(Successor* successor) const;
  };

  Guard(SharedState& state, util::Fd line);
  bool over() const { return state_.phase == CommandPhase::over; }
  void send_order(const GuardOrder& order) const;
  void take_over(TimePoint now);

  SharedState& state_;
  Grouping grouping_ = Grouping::own;
  util::Fd line_;
  pid_t pid_ = -1;  // -1: reaped
  pid_t session_;
  Exclusions older_;  // children from before `exec rlock`
  bool hung_up_ = false;
  bool lost_ = false;
  bool ending_ = false;    // was asked to end it all
  bool given_up_ = false;  // and killed, since it did not
  uint64_t progress_ = 0;
  TimePoint progress_at_;
  std::unique_ptr<Successor, DeleteSuccessor> successor_;
};

}  // namespace rlock::run
