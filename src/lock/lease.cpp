#include "lock/lease.hpp"

#include <algorithm>
#include <utility>

namespace rlock::lock {
namespace {

constexpr Millis kFirstBackoff{10};
constexpr Millis kLongestBackoff{500};
constexpr Millis kFirstCompletion{1000};

// Shorter attempts would give up what is only a little slow.
Millis least_attempt(Millis ttl) {
  constexpr Millis kMost{2000};
  return std::min(kMost, ttl / 6);
}

}  // namespace

TimePoint lease_deadline(TimePoint sent_at, Millis ttl) {
  return sent_at + ttl - ttl / 100 - Millis(2);
}

Millis kill_margin(Millis ttl) {
  return std::clamp(ttl / 5, Millis(250), Millis(2000));
}

LeaseMonitor::LeaseMonitor(const Settings& settings, TimePoint granted_at, TimePoint answered_at)
    : settings_(settings), sent_at_(granted_at), next_attempt_(TimePoint::max()) {
  renewed(granted_at, answered_at);
}

void LeaseMonitor::renewed(TimePoint sent_at, TimePoint answered_at) {
  sent_at_ = std::max(sent_at_, sent_at);
  backoff_ = Millis(0);
  answer_time_ = std::min<Nanos>(2 * (answered_at - sent_at), settings_.ttl / 3);
  abandoned_time_ = Nanos(0);
  next_attempt_ =
      settings_.watchdog == Watchdog::none ? TimePoint::max() : sent_at_ + renew_interval();
}

void LeaseMonitor::complete_grant(TimePoint now) {
  if (settings_.watchdog == Watchdog::none) return;
  next_attempt_ = std::min(next_attempt_, now);
  completion_pause_ = kFirstCompletion;
}

Millis LeaseMonitor::renew_interval() {
  const Millis usual = settings_.ttl / 3;
  if (completion_pause_ >= usual) completion_pause_ = Millis(0);
  if (completion_pause_ == Millis(0)) return usual;
  return std::exchange(completion_pause_, 2 * completion_pause_);
}

void LeaseMonitor::failed(TimePoint sent_at, TimePoint now) {
  if (now >= attempt_deadline(sent_at)) abandoned_time_ = 2 * (now - sent_at);
  backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLongestBackoff);
  next_attempt_ = now + std::min(backoff_, settings_.ttl / 20);
}

TimePoint LeaseMonitor::attempt_deadline(TimePoint sent_at) const {
  // Half of what is left: the server may be a dead one, while another takes its place.
  Nanos left = terminate_at() - sent_at;
  Nanos least = least_attempt(settings_.ttl);
  return sent_at + std::max({least, answer_time_, std::min(abandoned_time_, left / 2)});
}

TimePoint LeaseMonitor::terminate_at() const {
  return std::max(sent_at_ + settings_.ttl / 2, kill_at() - settings_.kill_after);
}

}  // namespace rlock::lock
