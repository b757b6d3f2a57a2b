// Runs in rlock, on the main thread, and in the guard.

#include "run/stop_requests.hpp"

#include <signal.h>
#include <sys/wait.h>

namespace rlock::run {

bool asks_to_stop(int number) noexcept {
  return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

bool StopRequests::note(int number, TimePoint at) noexcept {
  if (!asks_to_stop(number) || (first_ != 0 && first_ != SIGHUP)) return false;
  first_ = number;
  hangup_at_ = at;
  return true;
}

void StopRequests::note_key(int number, TimePoint at) noexcept {
  if (!asks_to_stop(number)) return;
  for (Key& key : keys_) {
    if (key.number != 0 && key.number != number) continue;
    key = {number, at};
    return;
  }
}

int StopRequests::cancel(const SharedState& end) const noexcept {
  const TimePoint since = end.ended_at() - kill_after_;
  if (first_ != 0 && (first_ != SIGHUP || hangup_at_ >= since)) return first_;
  const int number = end.end_code == CLD_EXITED ? end.end_status - 128 : end.end_status.load();
  for (const Key& key : keys_) {
    if (number != 0 && key.number == number && key.at >= since) return number;
  }
  return 0;
}

int StopRequests::why_leftovers_end(const SharedState& end) const noexcept {
  const int number = cancel(end);
  return number != 0 ? number : end.killed_by();
}

}  // namespace rlock::run
