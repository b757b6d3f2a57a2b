#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "util/clock.hpp"

namespace rlock::cli {

// Writes texts, in order, on a thread of its own, because a disk that hangs must not cost the
// lease.
class BackgroundWriter {
 public:
  // Writes one text. Returns 0, or the errno if it is lost.
  using Write = std::function<int(const std::string& text)>;

  // `most`: the bytes that may wait to be written. Texts beyond them are lost.
  BackgroundWriter(Write write, size_t most);

  // Does not wait. Only if no thread can be started, the caller's thread writes.
  void append(std::string text);
  // Waits until everything is written, for at most `timeout`. Returns 0, or the errno of the first
  // text that is lost; EBUSY if it is not written so far.
  int drain(Millis timeout);

 private:
  struct Queue;
  static void write_texts(Queue& own);

  // Shared with the thread, which may hang for longer than this object lives.
  std::shared_ptr<Queue> queue_;
};

}  // namespace rlock::cli
