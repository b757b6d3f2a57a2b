// Runs in rlock, on the main thread, and in the guard.
#pragma once

#include <array>

#include "run/shared_state.hpp"
#include "util/clock.hpp"

namespace rlock::run {

// Whether a signal asks a command to stop. A HUP may ask for something else.
bool asks_to_stop(int number) noexcept;

// The requests to stop that rlock received or passed on, and what they mean for the processes that
// the command leaves. rlock and its guard each have one, so that the guard decides like rlock if
// rlock is stopped. Async-signal-safe. [docs/SUPERVISION.md, "After a cancel"]
class StopRequests {
 public:
  explicit StopRequests(Millis kill_after) noexcept : kill_after_(kill_after) {}

  // Notes a signal of another process. Returns whether it is the first TERM, INT or QUIT, or a HUP
  // before that.
  bool note(int number, TimePoint at) noexcept;
  // Notes a signal of the terminal.
  void note_key(int number, TimePoint at) noexcept;

  // The first TERM, INT or QUIT of another process, otherwise HUP; 0 if there was none.
  int first() const noexcept { return first_; }

  // The request after which the command exited, as `end` says; 0 if there was none. A key that the
  // command survived was not meant for processes that it started later, and a HUP only asked it to
  // read its configuration again.
  int cancel(const SharedState& end) const noexcept;
  // The same, or the signal of which the command died: its leftover processes have to be stopped. 0
  // if they may stay.
  int why_leftovers_end(const SharedState& end) const noexcept;

 private:
  struct Key {
    int number = 0;
    TimePoint at{};
  };

  Millis kill_after_;
  int first_ = 0;
  TimePoint hangup_at_{};      // when the last HUP came, if it is the first request
  std::array<Key, 4> keys_{};  // when each of these signals last came from the terminal
};

}  // namespace rlock::run
