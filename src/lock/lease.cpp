#include "lock/lease.hpp"

#include <algorithm>
#include <utility>

namespace rlock::lock {
TimePoint lease_deadline(TimePoint sent_at, Millis ttl) {
  return sent_at + ttl - timing::drift(ttl);
}

LeaseMonitor::LeaseMonitor(const Settings& settings, TimePoint granted_at, TimePoint answered_at)
    : settings_(settings), sent_at_(granted_at), next_attempt_(TimePoint::max()) {
  renewed(granted_at, answered_at);
}

void LeaseMonitor::renewed(TimePoint sent_at, TimePoint answered_at) {
  sent_at_ = std::max(sent_at_, sent_at);
  backoff_ = Millis(0);
  answer_time_ =
      std::min<Nanos>(2 * (answered_at - sent_at), timing::longest_expected_answer(settings_.ttl));
  abandoned_time_ = Nanos(0);
  next_attempt_ =
      settings_.watchdog == Watchdog::none ? TimePoint::max() : sent_at_ + renew_interval();
}

void LeaseMonitor::complete_grant(TimePoint first) {
  if (settings_.watchdog == Watchdog::none) return;
  next_attempt_ = std::min(next_attempt_, first);
  completion_pause_ = timing::kFirstCompletion;
}

Millis LeaseMonitor::renew_interval() {
  const Millis usual = timing::renew_interval(settings_.ttl);
  if (completion_pause_ >= usual) completion_pause_ = Millis(0);
  if (completion_pause_ == Millis(0)) return usual;
  return std::exchange(completion_pause_, 2 * completion_pause_);
}

void LeaseMonitor::failed(TimePoint sent_at, TimePoint now) {
  if (now >= attempt_deadline(sent_at)) abandoned_time_ = 2 * (now - sent_at);
  const Millis longest = now < deadline() ? timing::longest_renew_backoff(settings_.ttl)
                                          : timing::kLongestRenewBackoff;
  backoff_ = std::min(longest, std::max(backoff_ * 2, timing::kFirstRenewBackoff));
  next_attempt_ = now + backoff_;
}

TimePoint LeaseMonitor::attempt_deadline(TimePoint sent_at) const {
  // Half of what is left, because this server may be dead while another takes its place.
  Nanos left = terminate_at() - sent_at;
  Nanos least = timing::least_renewal(settings_.ttl);
  return sent_at + std::max({least, answer_time_, std::min(abandoned_time_, left / 2)});
}

TimePoint LeaseMonitor::terminate_at() const {
  return std::max(sent_at_ + timing::usable_lease(settings_.ttl), kill_at() - settings_.kill_after);
}

Millis survived_outage(const LeaseMonitor::Settings& settings) {
  const LeaseMonitor lease(settings, TimePoint(), TimePoint());
  const auto longest = std::chrono::floor<Millis>(lease.terminate_at() - lease.next_attempt()) -
                       timing::renewal_after_outage(settings.ttl);
  if (longest < std::chrono::seconds(1)) return std::max(longest, Millis(0));
  return std::chrono::floor<std::chrono::seconds>(longest);
}

}  // namespace rlock::lock
