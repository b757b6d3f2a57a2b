#pragma once

#include <memory>
#include <string>

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

}  // namespace rlock::cli
