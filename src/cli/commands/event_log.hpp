#pragma once

#include <optional>
#include <string>

#include "cli/commands/log_writer.hpp"
#include "cli/output/json.hpp"
#include "run/run.hpp"

namespace rlock::cli {

// The name of an event in the log and in the lines of -v: `renew-failed`.
std::string_view to_string(run::EventKind kind);

// Whether the command starts after it.
bool begins_hold(run::EventKind kind);

// One JSON object a line, each appended with a single write, so that several runs may share a file.
class EventLog {
 public:
  // ErrorKind::system if the file cannot be opened. To be called before anything is locked.
  static Result<EventLog> open(const std::string& path, const lock::AcquireCall& claim,
                               std::string server);

  void append(const run::Event& event);
  // How a run that started no command ended: `skipped`, `timed-out`, `unreachable` …
  void append_attempt_end(std::string_view event_name, const std::string& detail);
  // Waits until everything is written, for at most `timeout`. ErrorKind::system if events were
  // lost.
  Status drain(Millis timeout);

 private:
  EventLog(LogFile file, std::string path, const lock::AcquireCall& claim, std::string server);
  void append_line(LoggedEvent event, TimePoint at);

  LogWriter writer_;
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
