#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/child.hpp"
#include "run/guard.hpp"
#include "run/lease.hpp"
#include "run/renewer.hpp"
#include "run/run.hpp"
#include "run/terminal.hpp"

namespace rlock::run {

// Why rlock ends a command.
enum class Cause { lease, run_limit, no_renewal, no_guard };

// What became of the command; it is reaped, and so is all that had to end with it.
struct Finish {
  CommandEnd end;        // of its process, also when that never got through its exec
  bool started = false;  // whether that ran the command, not only tried to
  int exec_error = 0;    // errno when it could not be executed
  std::optional<Cause> ended_for;
  std::optional<LeaseEnd> lost;      // also when that did not end the command
  std::optional<util::Error> error;  // with no_renewal and no_guard
  std::vector<std::string> survivors;
};

// Starts the command and watches over it, its guard and the renewal thread until it has ended.
// [SUPERVISION, Order of a run]
class Supervisor {
 public:
  struct Parts {
    const Plan& plan;
    lock::Token token;
    Signals& signals;
    Observer& observer;
    Page& page;
    Guard& guard;
    Lease& lease;
    Renewer& renewer;
    Terminal& terminal;
    Quarry quarry;  // the command's pid is filled in here
  };
  explicit Supervisor(Parts parts) : parts_(std::move(parts)) {}

  // ErrorKind::system when no process can be had: then nothing has run.
  util::Result<Finish> run(Child& child);

 private:
  // An end that is under way: TERM has been sent, KILL comes at `kill_at` unless the lease ends
  // before.
  struct Ending {
    Cause cause;
    TimePoint kill_at;
    bool killed = false;
  };

  void watch();
  bool over();
  bool command_ended();
  bool descendants_left();
  void signal(int number);
  void read_signals();
  void forward(const signalfd_siginfo& info);
  void pass_on_from_terminal(int number);
  void tend_children();
  void announce_stop();
  void reap_strangers();
  void start_renewal(TimePoint now);
  void judge(TimePoint now);
  void judge_lease(const Lease::View& lease, TimePoint now);
  void begin(Cause cause, TimePoint kill_at);
  TimePoint kill_due(const Lease::View& lease) const;
  bool awaits_thread() const;
  void kill_everything();
  TimePoint next_look() const;
  Finish finish();
  void settle_with_guard();
  bool ended_by_itself() const;
  bool ever_started() const;
  CommandEnd reap();
  void tell(EventKind kind, std::string detail = {});

  bool fenced() const { return parts_.plan.on_lost == OnLost::terminate; }

  Parts parts_;
  TimePoint started_;
  TimePoint next_thread_try_;
  std::optional<Ending> ending_;
  bool ended_ = false;    // the command itself: what it started may be waited for
  pid_t descendant_ = 0;  // one of those
  Finish finish_;
  Survivors survivors_;
};

}  // namespace rlock::run
