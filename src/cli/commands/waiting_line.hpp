#pragma once

#include <optional>
#include <string>

#include "lock/store.hpp"
#include "util/clock.hpp"

namespace rlock::cli {

// The one live line of a waiting run on a terminal: redrawn in place, erased at the end.
class WaitingLine {
 public:
  WaitingLine() = default;
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;
  ~WaitingLine() { erase(); }

  // Draws nothing while we are in the terminal's background.
  void draw(const std::string& text);
  void erase();

 private:
  size_t drawn_ = 0;  // characters that stand there now
};

// What waits for what: `waiting for "nightly", 2nd in line: held by alice@web1 (pid 4711) for 2m3s:
// …`. `age`: how long ago the server said so.
std::string waiting_text(const lock::LockName& name, const lock::Queued& queued, Millis age);

// When a run that waits off a terminal says so: `first` after the wait began, then once a minute.
class WaitingReports {
 public:
  explicit WaitingReports(Millis first) : first_(first) {}

  void begin(TimePoint now);
  // True once each time that a line is due.
  bool due(TimePoint now);
  // How long until the next one; 0 before the wait began.
  Millis remaining(TimePoint now) const;

 private:
  Millis first_;
  std::optional<TimePoint> next_;
};

}  // namespace rlock::cli
