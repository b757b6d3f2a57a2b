#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/output/json.hpp"
#include "run/run.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

namespace rlock::cli {

struct LogFile {
  util::Fd writer{};  // appends
  util::Fd reader{};  // none where it is no regular file, or may not be read
};

// Writes lines to a file from a thread of its own: a disk that hangs must cost no lease. Where no
// thread can be started the caller's writes them.
class LogWriter {
 public:
  explicit LogWriter(LogFile log);

  // One write(2) a line. While the file takes none, lines beyond kMostUnwritten bytes are lost.
  void append(std::string line);
  // Returns once everything is written, or after `timeout`. 0, or the error number of the first
  // line that was lost; EBUSY where the file did not take the lines in time.
  int drain(Millis timeout);

 private:
  struct State;
  static void* write_lines(void* state);

  std::shared_ptr<State> state_;  // the thread's, too: it may hang for longer than we live
};

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
