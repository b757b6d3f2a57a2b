#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "cli/event_log.hpp"
#include "cli/parse.hpp"
#include "cli/waiting_line.hpp"

namespace rlock::cli {

enum class Talk { errors, usual, verbose };  // -q, nothing, -v
Talk talk_of(const Choices& choices);

// What a run tells while it waits and runs: the live line, the event log, the lines of -v.
class RunObserver final : public run::Observer {
 public:
  RunObserver(lock::LockName name, Talk talk, std::optional<EventLog> log);

  void queued(const lock::Queued& queued) override;
  void trouble(const util::Error& error) override;
  void must_poll(const util::Error& error) override;
  util::Millis tick_every() const override;
  void tick() override;
  void event(const run::Event& event) override;
  void stopping(util::Millis left) override;
  void cannot_end(const std::vector<std::string>& survivors) override;

  // Under whom the lock was acquired or entered.
  std::optional<lock::Owner> holds_as() const;
  lock::Token token() const;

  // Erases the live line and prints what stderr did not take before, within kLastWords: nothing is
  // held any more, and a last message follows.
  void end();

  // What else there is for the event log: how the try to get the lock ended.
  void finished(std::string_view event, const std::string& detail);

 private:
  void redraw();
  void report_if_due();
  std::string state_text() const;
  void mention(std::string_view message);

  const lock::LockName name_;
  const Talk talk_;
  const bool live_;

  mutable std::mutex mutex_;  // events also come from the renewal thread
  std::optional<EventLog> log_;
  WaitingLine line_;
  std::optional<WaitingReports> reports_;  // instead of the live line, where stderr is no terminal
  std::optional<lock::Queued> queued_;
  std::optional<std::string> trouble_;
  std::string unsaid_;  // lines that stderr had no room for
  util::TimePoint seen_;
  std::optional<lock::Owner> holds_as_;
  lock::Token token_;
};

}  // namespace rlock::cli
