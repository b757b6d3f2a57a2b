#pragma once

#include <memory>
#include <string>

#include "util/clock.hpp"
#include "util/fd.hpp"

namespace rlock::cli {

// Writes lines to a file from a thread of its own: a disk that hangs must cost no lease. Where no
// thread can be started the caller's writes them.
class LogWriter {
 public:
  explicit LogWriter(util::Fd file);

  // One write(2) a line. While the file takes none, lines beyond kMostUnwritten bytes are lost.
  void append(std::string line);
  // Returns once everything is written, or after `timeout`.
  void drain(Millis timeout);

 private:
  struct State;
  static void* write_lines(void* state);

  std::shared_ptr<State> state_;  // the thread's, too: it may hang for longer than we live
};

}  // namespace rlock::cli
