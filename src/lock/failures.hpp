#pragma once

#include <optional>

#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::lock {

// The failures of a request that is tried again, and what they have in common. A cause that only
// somebody can remove may also be that of a moment: the name servers begin with an empty zone, a
// failover is under way. It counts as permanent if there has been no other one.
class Failures {
 public:
  void note(Cause cause, TimePoint now) {
    if (cause_ == cause) return;
    mixed_ = mixed_ || cause_.has_value();
    cause_ = cause;
    since_ = now;
  }
  // A server has carried out a request: what fails later has been right before.
  void note_success() { mixed_ = true; }

  // Whether more tries are of no use: the sentinels have had the time to learn their masters.
  bool is_lasting(TimePoint now) const {
    constexpr Millis kLearningTime{5000};
    return cause_ == Cause::unknown_master && now - since_ >= kLearningTime;
  }

  // The last error, when no more is tried. `tried`: for how long.
  Error end(Error error, Millis tried, TimePoint now) const {
    const bool only = cause_ == Cause::unknown_host || cause_ == Cause::read_only ||
                      cause_ == Cause::missing_sentinels;
    if ((only && !mixed_) || is_lasting(now)) {
      error.kind = ErrorKind::config;
      error.retry = Retry::never;
    } else {
      error.tried = tried;
    }
    return error;
  }

 private:
  std::optional<Cause> cause_;  // of the last failure
  TimePoint since_{};           // from when it has been the only one
  bool mixed_ = false;          // there were others
};

}  // namespace rlock::lock
