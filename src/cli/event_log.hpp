#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/output/json.hpp"
#include "run/run.hpp"
#include "util/clock.hpp"

namespace rlock::cli {

// The name of an event in the log and in the lines of -v: `renew-failed`.
std::string_view to_string(run::EventKind kind);

// Whether the command starts after it.
bool begins_hold(run::EventKind kind);

// One JSON object a line, each appended with a single write, so that several runs may share a file.
// A thread of its own writes them: a disk that hangs must cost no lease.
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
  struct Queue;
  EventLog(std::shared_ptr<Queue> queue, std::string path, const lock::AcquireCall& claim,
           std::string server);
  void append_line(LoggedEvent event, TimePoint at, bool ends_wait);
  static void write_lines(Queue& own);

  std::shared_ptr<Queue> queue_;  // the thread's, too: it may hang for longer than we live
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
