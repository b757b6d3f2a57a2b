#pragma once

#include <optional>

#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::lock {

// The failures of a request that is tried again, and what they have in common. A cause that usually
// needs a person may also be temporary: name servers start with an empty zone, or a failover is in
// progress. A cause counts as permanent if there was no other cause.
class Failures {
 public:
  void note(Cause cause, TimePoint now) {
    if (cause_ == cause) return;
    mixed_ = mixed_ || cause_.has_value();
    cause_ = cause;
    since_ = now;
  }
  // A server has carried out a request, so the cause of later failures is temporary.
  void note_success() { mixed_ = succeeded_ = true; }

  // Whether more tries are useless, because the sentinels have had the time to learn their masters.
  bool is_lasting(TimePoint now) const {
    constexpr Millis kLearningTime{5000};
    return cause_ == Cause::unknown_master && !succeeded_ && now - since_ >= kLearningTime;
  }

  // The last error, when rlock stops trying. `tried`: for how long it tried.
  Error end(Error error, Millis tried, TimePoint now) const {
    const bool only = cause_ == Cause::unknown_host || cause_ == Cause::read_only ||
                      cause_ == Cause::missing_sentinels || cause_ == Cause::unknown_master;
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
  TimePoint since_{};           // since when it has been the only cause
  bool mixed_ = false;          // there were other causes
  bool succeeded_ = false;      // a request was carried out
};

}  // namespace rlock::lock
