#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "cli/commands/event_log.hpp"
#include "cli/commands/waiting_line.hpp"
#include "cli/options/parse.hpp"

namespace rlock::cli {

enum class Verbosity { quiet, normal, verbose };  // -q, nothing, -v
Verbosity verbosity_of(const Choices& choices);

// What a run tells while it waits and runs: the live line, the event log, the lines of -v.
class RunObserver final : public run::Observer {
 public:
  RunObserver(lock::LockName name, Verbosity verbosity, std::optional<EventLog> log);

  void queued(const lock::Queued& queued) override;
  void transient_error(const Error& error) override;
  void must_poll(const Error& error) override;
  Millis tick_every() const override;
  void tick() override;
  void event(const run::Event& event) override;
  void stopping(Millis remaining) override;
  void cannot_end(const std::vector<std::string>& survivors) override;

  // Under whom the lock was acquired or entered.
  std::optional<lock::Owner> held_owner() const;
  lock::Token token() const;

  // Erases the live line and prints what stderr did not take before, within kLastWords: nothing is
  // held any more, and a last message follows.
  void end();

  // What else there is for the event log: how the try to get the lock ended.
  void log_attempt_end(std::string_view event, const std::string& detail);

 private:
  void redraw();
  void report_if_due();
  std::string state_text() const;
  void print_or_queue(std::string_view message);

  const lock::LockName name_;
  const Verbosity verbosity_;
  const bool live_;

  mutable std::mutex mutex_;  // events also come from the renewal thread
  std::optional<EventLog> log_;
  WaitingLine line_;
  std::optional<WaitingReports> reports_;  // instead of the live line, where stderr is no terminal
  std::optional<lock::Queued> queued_;
  std::optional<std::string> last_error_;
  std::string unprinted_;  // lines that stderr had no room for
  TimePoint queued_at_;
  std::optional<lock::Owner> held_owner_;
  lock::Token token_;
};

}  // namespace rlock::cli
