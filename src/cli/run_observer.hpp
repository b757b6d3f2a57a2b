#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/background_writer.hpp"
#include "cli/deadlock.hpp"
#include "cli/event_log.hpp"
#include "cli/output/console.hpp"
#include "cli/output/dead_holders.hpp"
#include "cli/output/messages.hpp"
#include "cli/service_manager.hpp"
#include "cli/session.hpp"
#include "cli/usual_time.hpp"
#include "run/observer.hpp"
#include "run/plan.hpp"
#include "run/signals.hpp"
#include "util/mutex.hpp"

namespace rlock::cli {

// Prints lines on stderr. Keeps those that stderr does not accept, and tries again with the next
// one.
class StderrLines {
 public:
  // Never waits for the reader of a pipe, or for a terminal.
  void print(std::string_view line);
  // Prints what is left, for at most kFinalPrintTimeout.
  void finish();

 private:
  std::string unprinted_;
};

// The live line of a waiting run on a terminal: redrawn in place, erased at the end.
class WaitingLine {
 public:
  WaitingLine() = default;
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;
  ~WaitingLine() { erase(); }

  // Draws nothing while rlock is in the terminal's background. If `text` does not fit, draws
  // `brief` instead, unless that is empty.
  void draw(const std::string& text, const std::string& brief = {});
  void erase() { end("\r" + std::string(drawn_, ' ') + "\r"); }
  // Leaves the line on the terminal, so that later output begins below it.
  void keep() { end("\n"); }

 private:
  void end(const std::string& text);
  size_t drawn_ = 0;  // characters on the line now
};

// `waiting for "nightly", 2nd in line: held by alice@web1 (pid 4711) for 2m3s: …`. `age`: the age
// of the server's reply. `usual`: how long runs usually take, if known.
std::string waiting_text(const lock::LockName& name, const lock::Queued& queued, Millis age,
                         TimeStyle style = TimeStyle::duration, std::optional<Millis> usual = {});

// `waiting for "nightly" (2nd): alice@web1, usually 4m, about 2m left`, for a narrow terminal.
// Empty if the expected end is unknown.
std::string brief_waiting_text(const lock::LockName& name, const lock::Queued& queued, Millis age,
                               std::optional<Millis> usual);

// When a run that waits without a terminal reports its wait: `first` after the wait began, then
// once a minute.
class WaitingReports {
 public:
  explicit WaitingReports(Millis first) : first_(first) {}

  void begin(TimePoint now);
  // True once for each report that is due.
  bool due(TimePoint now);
  // Whether there has been a report.
  bool began() const { return began_; }
  // Time until the next report; 0 before the wait began.
  Millis remaining(TimePoint now) const;

 private:
  Millis first_;
  std::optional<TimePoint> next_;
  bool began_ = false;
};

// Reports what a run does while it waits and runs: in the live line, the event log, the lines of
// -v, and to the service manager. With -q and the event log on stderr, each line is an event
// instead, so that stderr is JSON. Only on() may be called from the renewal thread, too.
class RunObserver final : public run::Observer {
 public:
  RunObserver(lock::LockName name, Verbosity verbosity, std::optional<EventLog> log,
              ServiceManager manager = {});

  // The wait for the lock of `plan` begins at `start`. From here on, unless with -q, the observer
  // also reports when the holder's run is expected to end, whether that is later than the wait, and
  // whether runs wait for each other.
  void begin_wait(const run::Plan& plan, Session& session, const run::Signals& signals,
                  TimePoint start);

  // Prints a line. Never waits for the reader of stderr.
  void report(const std::string& message, Weight weight = Weight::notice);
  // Whether each line is an event.
  bool prints_events() const { return prints_events_; }

  // Calls `end` once the lock is held.
  void after_wait(std::function<void()> end) { after_wait_ = std::move(end); }

  void queued(const lock::Queued& seen) override;
  Millis ask_again_after() const override;
  void transient_error(const Error& error) override;
  void no_server(const Error& why, TimePoint until) override;
  void must_poll(const Error& error) override;
  Millis tick_every() const override;
  void tick() override;
  void on(const run::Notification& notification) override;

  // The event with which the command could start; nullopt before.
  std::optional<run::Event> hold() const;

  // Leaves the live line on the terminal, so that a user who interrupts the wait sees what it was
  // for.
  void keep_line();

  // Erases the live line and prints what stderr did not accept before, for at most
  // kFinalPrintTimeout. Call it when no lock is held any more, before the last message.
  void finish_output();

  // Logs how the attempt to acquire the lock ended. Reports the service as ready to the service
  // manager if its work was done before.
  void report_attempt_end(std::string_view event, const std::string& detail);
  // Waits for the event log, for at most kFinalPrintTimeout. Call it after the last event.
  void finish_log();

 private:
  void show(const run::Event& event);
  void show(const run::AwaitingReplicas& granted);
  void show(const run::Suspending& suspending);
  void show(const run::RenewalsFail& outage);
  void show(const run::RenewedAgain& renewed);
  void show(const run::ConnectedAgain& connected);
  void show(const run::CannotStop& stuck);
  void show(const run::Unheeded& unheeded);
  void show(const run::StillReleasing&);
  void show(const run::Exempted& exempted);
  void show(const run::Leftovers& left);
  void update_usual_time(const lock::Queued& queued);
  void look_for_deadlock(const lock::Queued& queued);
  bool mark_died(lock::Queued& queued);
  std::string death_before() const;
  void report_wait(TimePoint granted_at);
  void report_short_wait();
  void report_outage_if_due();
  void report_distrust();
  void end_outage();
  void redraw();
  Millis age_of_reply() const;
  bool awaits_history() const;
  std::optional<Millis> usual_time() const;
  void report_if_due();
  void report_event(run::Event event);
  void report_to_manager(const run::Event& event);
  std::string state_text(TimeStyle style = TimeStyle::duration) const;
  std::string outage_text() const;
  std::string connected_text(const std::string& server) const;
  void print_or_queue(std::string_view message, Weight weight = Weight::notice);
  void warn(const std::string& message);

  const lock::LockName name_;
  std::string lock_options_;  // Session::lock_options()
  std::string server_;
  const Verbosity verbosity_;
  const bool live_;

  mutable util::Mutex mutex_;  // for on(), from both threads
  std::optional<EventLog> log_;
  const bool prints_events_;
  const std::shared_ptr<StderrLines> lines_ = std::make_shared<StderrLines>();
  std::optional<BackgroundWriter> writer_;  // prints `lines_` if stderr is a file
  ServiceManager manager_;
  WaitingLine line_;
  std::optional<WaitingReports> reports_;  // instead of the live line, if stderr is not a terminal
  // Set while the server has been unavailable, since the beginning of the wait or since its last
  // answer. The outage is reported after a while, even if the server answers for a moment between
  // two waits.
  std::optional<WaitingReports> outage_reports_;
  TimePoint give_up_at_ = TimePoint::max();    // unless the server answers
  bool outage_reported_ = false;               // at least one
  bool outage_shown_ = false;                  // the present one
  bool unexplained_ = false;                   // it was reported before its cause was known
  std::optional<TimePoint> distrusted_since_;  // since when TLS has failed in this outage
  bool distrust_reported_ = false;
  // A waiter asks the server for these, on the main thread.
  std::optional<UsualTime> usual_;  // nullopt: locks of this format have no history
  std::optional<DeadlockWatch> deadlock_;
  bool knows_rules_ = false;    // warned of rules of a newer rlock
  std::optional<Millis> wait_;  // nullopt after report_short_wait() has reported it
  std::optional<lock::Queued> queued_;
  DeadHolders dead_holders_;
  bool unsure_ = false;  // whether the holder has died or released the lock
  std::optional<std::string> last_error_;
  TimePoint wait_began_;
  TimePoint queued_at_;
  std::optional<run::Event> hold_;
  std::function<void()> after_wait_;
};

}  // namespace rlock::cli
