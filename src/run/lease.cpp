#include "run/lease.hpp"

namespace rlock::run {

Lease::Lease(const lock::LeaseMonitor::Settings& settings, TimePoint granted_at, SharedState* fence)
    : monitor_(settings, granted_at, util::BootClock::now()), fence_(fence) {
  publish();
}

void Lease::publish() {
  if (fence_ != nullptr) fence_->set_kill_at(monitor_.guard_kill_at());
}

void Lease::renewed(TimePoint sent_at, TimePoint answered_at) {
  std::lock_guard hold(mutex_);
  monitor_.renewed(sent_at, answered_at);
  trouble_.reset();
  publish();
}

void Lease::failed(TimePoint sent_at, TimePoint now, util::Error why) {
  std::lock_guard hold(mutex_);
  monitor_.failed(sent_at, now);
  trouble_ = std::move(why);
}

void Lease::lost(lock::Lost how) {
  std::lock_guard hold(mutex_);
  if (!lost_) lost_ = std::move(how);
}

void Lease::complete_grant(TimePoint now) {
  std::lock_guard hold(mutex_);
  monitor_.complete_grant(now);
}

TimePoint Lease::next_attempt() const {
  std::lock_guard hold(mutex_);
  return monitor_.next_attempt();
}

TimePoint Lease::attempt_deadline(TimePoint sent_at) const {
  std::lock_guard hold(mutex_);
  return monitor_.attempt_deadline(sent_at);
}

Lease::View Lease::view() const {
  std::lock_guard hold(mutex_);
  return {monitor_.terminate_at(), monitor_.kill_at(), monitor_.deadline(), lost_, trouble_};
}

}  // namespace rlock::run
