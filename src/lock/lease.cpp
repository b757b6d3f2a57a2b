#include "lock/lease.hpp"

#include "util/mutant.hpp"

#include <algorithm>

namespace rlock::lock {
namespace {

constexpr Millis kFirstBackoff{10};
constexpr Millis kLongestBackoff{500};
constexpr Millis kLongestAttempt{2000};

}  // namespace

TimePoint lease_deadline(TimePoint sent_at, Millis ttl) {
  return sent_at + ttl - ttl / 100 - Millis(2);
}

Millis kill_margin(Millis ttl) {
  return std::clamp(ttl / 5, Millis(250), Millis(2000));
}

LeaseMonitor::LeaseMonitor(const Settings& settings, TimePoint granted_at)
    : settings_(settings), sent_at_(granted_at), next_attempt_(TimePoint::max()) {
  renewed(granted_at);
}

void LeaseMonitor::renewed(TimePoint sent_at) {
  sent_at_ = std::max(sent_at_, sent_at);
  backoff_ = Millis(0);
  next_attempt_ = settings_.watchdog == Watchdog::none || mutant(util::Mutant::no_renewal)
                      ? TimePoint::max()
                      : sent_at_ + settings_.ttl / 3;
}

void LeaseMonitor::failed(TimePoint now) {
  backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLongestBackoff);
  next_attempt_ = now + std::min(backoff_, settings_.ttl / 20);
}

TimePoint LeaseMonitor::attempt_deadline(TimePoint sent_at) const {
  return sent_at + std::min(kLongestAttempt, settings_.ttl / 6);
}

TimePoint LeaseMonitor::terminate_at() const {
  // Without a watchdog nothing is left to wait for: the grace is what the user asked for.
  TimePoint earliest =
      settings_.watchdog == Watchdog::none ? sent_at_ : sent_at_ + settings_.ttl / 2;
  return std::max(earliest, kill_at() - settings_.kill_after);
}

}  // namespace rlock::lock
