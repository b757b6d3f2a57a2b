// Runs in rlock, on the main thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/guard.hpp"
#include "run/renewer.hpp"
#include "run/run.hpp"
#include "run/terminal.hpp"

namespace rlock::run {

// Why rlock ends a command.
// cancel: the command has ended after a request to stop, and what it left behind has to end, too.
enum class EndCause { lease, run_limit, no_renewal, no_guard, cancel };

// What became of the command; it is reaped, and so is all that had to end with it.
struct CommandResult {
  CommandEnd end;                     // of its process, also when that never got through its exec
  bool started = false;               // whether that ran the command, not only tried to
  int exec_error = 0;                 // errno when it could not be executed
  std::optional<EndCause> ended_for;  // but for a cancel: the command had ended then
  std::optional<LeaseEnd> lost;       // also when that did not end the command
  std::optional<Error> error;         // with no_renewal and no_guard
  std::vector<std::string> survivors;
  bool asked_to_stop = false;  // TERM, INT, HUP or QUIT came, or was passed on
};

// Has the guard start the command, and watches over both and the renewal thread until the command
// and all that had to end with it are gone. What cannot be ended is waited for, and the lock kept,
// unless the lease is lost.
class Supervisor {
 public:
  Supervisor(const RunContext& context, const HeldLock& held_lock, SharedLease& lease,
             Renewer& renewer, Terminal& terminal)
      : context_(context),
        plan_(context.plan),
        held_lock_(held_lock),
        state_(context.state),
        lease_(lease),
        renewer_(renewer),
        terminal_(terminal) {}

  // `early`: a guard that was forked before the grant, if any. ErrorKind::system when no process is
  // available: then nothing has run.
  Result<CommandResult> run(std::unique_ptr<Guard> early);
  // The guard, which has nothing more to do then: its own end need not be waited for. Null when
  // there is none.
  std::unique_ptr<Guard> take_guard() { return std::move(guard_); }

 private:
  // An end that is under way: TERM has been sent, KILL comes at `kill_at` unless the lease ends
  // before.
  struct Termination {
    EndCause cause;
    TimePoint kill_at;
    bool killed = false;
    TimePoint killed_at{};
  };

  Status start_guard(std::unique_ptr<Guard> early);
  void watch();
  bool over(TimePoint now);
  bool stuck_permanently(TimePoint now) const;
  TimePoint give_up_at() const;
  bool keeps_lock() const;
  void read_signals();
  void forward(const signalfd_siginfo& info);
  void note_late_signals();
  bool repeated(int number, pid_t passed_on_by);
  bool insists(int number);
  int cancel_signal() const;
  void end_rest_or_leave();
  void tend(TimePoint now);
  void follow_stops();
  void announce_stop();
  void reap_orphans();
  void start_renewal(TimePoint now);
  void check_limits(TimePoint now);
  void check_lease(const SharedLease::View& lease, TimePoint now);
  void report_survivors(TimePoint now);
  void begin(EndCause cause, TimePoint kill_at);
  TimePoint kill_due(const SharedLease::View& lease) const;
  bool awaits_thread() const;
  void kill_everything();
  TimePoint next_look() const;
  Result<CommandResult> finish();
  void take_over_from_guard();
  CommandEnd command_end() const;
  void emit(EventKind kind, std::string detail = {});

  bool terminates_on_loss() const { return plan_.on_lost == OnLost::terminate; }
  bool kill_failed() const { return state_.phase == CommandPhase::stuck; }
  // Some of the command's processes take no signal of ours.
  bool stuck() const { return kill_failed() || state_.phase == CommandPhase::refused; }

  const RunContext& context_;
  const Plan& plan_;
  const HeldLock& held_lock_;
  SharedState& state_;
  SharedLease& lease_;
  Renewer& renewer_;
  Terminal& terminal_;
  std::unique_ptr<Guard> guard_;
  TimePoint started_;
  TimePoint next_thread_try_;
  std::optional<Termination> termination_;
  uint32_t stops_seen_ = 0;  // of the command
  // TERM, INT, HUP and QUIT sent to rlock, by the guard of an outer run or the front that passed
  // them on; 0: others.
  std::map<pid_t, int> stop_requests_;
  int cancel_ = 0;                 // of them the first, but any other before HUP
  std::map<int, TimePoint> keys_;  // those that came from the terminal
  bool left_alone_ = false;        // what the command left behind after a normal end
  bool gave_up_ = false;           // the survivors are not waited for any more
  int gave_up_signal_ = 0;         // the second TERM or INT, which did that
  Millis report_every_{0};         // doubles
  TimePoint next_report_;
  CommandResult result_;
};

}  // namespace rlock::run
