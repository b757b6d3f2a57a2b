#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/background_writer.hpp"
#include "cli/output/json.hpp"
#include "run/observer.hpp"
#include "util/clock.hpp"

namespace rlock::cli {

// The name of an event in the log and in the lines of -v: `renew-failed`.
std::string_view to_string(run::EventKind kind);

// Whether the command starts after this event.
bool begins_hold(run::EventKind kind);

// Writes one JSON object a line, each with a single write, so that several runs may share a file.
class EventLog {
 public:
  // ErrorKind::system if the file cannot be opened. Call it before anything is locked.
  static Result<EventLog> open(const std::string& path, const lock::AcquireCall& claim,
                               std::string server);

  void append(const run::Event& event);
  // Logs how a run ended that did not start its command: `skipped`, `timed-out`, `unreachable` …
  void append_attempt_end(std::string_view event_name, const std::string& detail);
  // Logs what would be printed otherwise.
  void append_message(std::string_view message);
  // Whether the log is also standard error.
  bool is_stderr() const { return is_stderr_; }
  // Waits until everything is written, for at most `timeout`. ErrorKind::system if events were
  // lost.
  Status drain(Millis timeout);

 private:
  struct File;
  EventLog(std::shared_ptr<const File> file, std::string path, const lock::AcquireCall& claim,
           std::string server);
  void append_line(LoggedEvent event, TimePoint at, bool ends_wait);

  bool is_stderr_ = false;
  BackgroundWriter writer_;
  std::string path_;
  std::string name_;
  std::string owner_;
  std::string server_;
  Record run_;
  TimePoint opened_;
  std::optional<TimePoint> acquired_;
  lock::Token token_{};
};

}  // namespace rlock::cli
