#include "lock/lease.hpp"

#include "util/mutant.hpp"

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
  known_ = std::min<util::Nanos>(2 * (answered_at - sent_at), settings_.ttl / 3);
  tried_ = util::Nanos(0);
  next_attempt_ = settings_.watchdog == Watchdog::none || mutant(util::Mutant::no_renewal)
                      ? TimePoint::max()
                      : sent_at_ + pace();
}

void LeaseMonitor::complete_grant(TimePoint now) {
  if (settings_.watchdog == Watchdog::none) return;
  next_attempt_ = std::min(next_attempt_, now);
  soon_ = kFirstCompletion;
}

Millis LeaseMonitor::pace() {
  const Millis usual = settings_.ttl / 3;
  if (soon_ >= usual) soon_ = Millis(0);
  if (soon_ == Millis(0)) return usual;
  return std::exchange(soon_, 2 * soon_);
}

void LeaseMonitor::failed(TimePoint sent_at, TimePoint now) {
  if (now >= attempt_deadline(sent_at)) tried_ = 2 * (now - sent_at);
  backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLongestBackoff);
  next_attempt_ = now + std::min(backoff_, settings_.ttl / 20);
}

TimePoint LeaseMonitor::attempt_deadline(TimePoint sent_at) const {
  // Half of what is left: the server may be a dead one, while another takes its place.
  util::Nanos left = terminate_at() - sent_at;
  util::Nanos least = least_attempt(settings_.ttl);
  return sent_at + std::max({least, known_, std::min(tried_, left / 2)});
}

TimePoint LeaseMonitor::terminate_at() const {
  return std::max(sent_at_ + settings_.ttl / 2, kill_at() - settings_.kill_after);
}

}  // namespace rlock::lock
