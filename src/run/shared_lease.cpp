#include "run/shared_lease.hpp"

namespace rlock::run {

SharedLease::SharedLease(const lock::LeaseMonitor::Settings& settings, TimePoint granted_at,
                         SharedState* guard_state)
    : monitor_(settings, granted_at, BootClock::now()), guard_state_(guard_state) {
  publish();
}

void SharedLease::publish() {
  if (guard_state_ != nullptr) {
    guard_state_->set_kill_at(monitor_.guard_kill_at(), monitor_.guard_count_at());
  }
}

void SharedLease::renewed(TimePoint sent_at, TimePoint answered_at) {
  std::lock_guard hold(mutex_);
  monitor_.renewed(sent_at, answered_at);
  last_error_.reset();
  publish();
}

void SharedLease::failed(TimePoint sent_at, TimePoint now, Error why) {
  std::lock_guard hold(mutex_);
  monitor_.failed(sent_at, now);
  last_error_ = std::move(why);
}

void SharedLease::lost(lock::Lost how) {
  std::lock_guard hold(mutex_);
  if (!lost_) lost_ = std::move(how);
}

void SharedLease::complete_grant(TimePoint now) {
  std::lock_guard hold(mutex_);
  monitor_.complete_grant(now);
}

TimePoint SharedLease::next_attempt() const {
  std::lock_guard hold(mutex_);
  return monitor_.next_attempt();
}

TimePoint SharedLease::attempt_deadline(TimePoint sent_at) const {
  std::lock_guard hold(mutex_);
  return monitor_.attempt_deadline(sent_at);
}

SharedLease::View SharedLease::view() const {
  std::lock_guard hold(mutex_);
  return {monitor_.terminate_at(), monitor_.kill_at(), monitor_.deadline(), lost_, last_error_};
}

}  // namespace rlock::run
