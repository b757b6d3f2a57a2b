// Renewer::loop() runs on the renewal thread, SharedLease on both threads, everything else on the
// main thread.

#include "run/renewer.hpp"

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lock/timing.hpp"
#include "run/requests.hpp"
#include "util/boot_timer.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

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

void SharedLease::complete_grant(TimePoint first) {
  std::lock_guard hold(mutex_);
  monitor_.complete_grant(first);
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

namespace {

constexpr size_t kThreadStack = 512UL * 1024;

void notify(const util::Fd& event) {
  uint64_t one = 1;
  // Fails only if the counter is full, and then the descriptor is already readable.
  [[maybe_unused]] ssize_t written = write(event.get(), &one, sizeof one);
}

// Drives the request as far as possible. Returns true if it is done or its time is over.
template <class Flight>
bool attempt_over(Flight& flight, TimePoint now) {
  if (!flight.request) return false;
  flight.done = flight.done || flight.request->advance(now);
  return flight.done || now >= flight.give_up_at;
}

// The reply, or an error if the attempt was given up.
template <class Reply, class Flight>
Result<Reply> take(Flight& flight) {
  auto request = std::move(flight.request);
  if (std::exchange(flight.done, false)) {
    auto reply = request->take();
    if (request->has_stragglers()) flight.stragglers = std::move(request);
    return reply;
  }
  return lock::no_answer(flight.store->server());
}

template <class Flight>
TimePoint due(const Flight& flight) {
  return flight.request ? std::min(flight.give_up_at, flight.request->due()) : flight.next;
}

}  // namespace

Result<std::unique_ptr<Renewer>> Renewer::make(const lock::Claim& claim,
                                               const lock::HeldLock& held_lock,
                                               const Dependencies& deps) {
  std::unique_ptr<Renewer> renewer(new Renewer(claim, held_lock, deps));
  renewer->notify_fd_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  renewer->lost_fd_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!renewer->notify_fd_ || !renewer->lost_fd_)
    return util::system_error("cannot start the renewal thread: eventfd");
  return renewer;
}

Status Renewer::start() {
  if (!completion_ && deps_.complete_grant) completion_ = deps_.complete_grant();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kThreadStack);
  int error = pthread_create(&thread_, &attributes, thread_main, this);
  pthread_attr_destroy(&attributes);
  if (error != 0)
    return util::system_error("cannot start the renewal thread: pthread_create", error);
  running_ = true;
  return Done{};
}

void Renewer::prefer() {
  if (std::exchange(preferred_, true)) return;
  sched_param least{};
  least.sched_priority = sched_get_priority_min(SCHED_FIFO);
  pthread_setschedparam(thread_, SCHED_FIFO | SCHED_RESET_ON_FORK, &least);
}

void Renewer::stop() {
  if (!running_) return;
  stopping_ = true;
  notify(notify_fd_);
  pthread_join(thread_, nullptr);
  running_ = false;
}

void* Renewer::thread_main(void* self) {
  static_cast<Renewer*>(self)->loop();
  return nullptr;
}

void Renewer::loop() {
  listener_.next = BootClock::now() + timing::kListenAfter;
  renewal_.next = deps_.lease.next_attempt();
  while (!over_) {
    advance_completion(BootClock::now());
    send_what_is_due(BootClock::now());
    const bool notified = wait();
    if (stopping_) break;
    TimePoint now = BootClock::now();
    if (notified) handle_notify(now);
    settle_listener(now);
    settle_renewal(now);
  }
  renewal_.request.reset();
  renewal_.stragglers.reset();
  listener_.request.reset();
  completion_.reset();
}

void Renewer::advance_completion(TimePoint now) {
  if (!completion_ || !completion_->advance(now)) return;
  const auto reach = completion_->take();
  completion_.reset();
  if (reach && *reach == lock::GrantReach::everywhere) return;
  const bool later = reach && *reach == lock::GrantReach::one_master;
  deps_.lease.complete_grant(later ? now + timing::kFirstCompletion : now);
  renewal_.next = deps_.lease.next_attempt();
}

void Renewer::send_what_is_due(TimePoint now) {
  if (!renewal_.request && now >= renewal_.next) {
    if (!renewal_.store) renewal_.store = deps_.make_store();
    renew_again_ = false;
    renewal_.sent_at = BootClock::now();
    renewal_.give_up_at = deps_.lease.attempt_deadline(renewal_.sent_at);
    lock::RenewCall call = renew_call(claim_, held_lock_, deps_.lease.view().deadline);
    call.record_changed = record_changed_;
    renewal_.stragglers.reset();
    renewal_.request = renewal_.store->renew(call);
    rounds_ = 0;
  }
  if (!listener_.request && now >= listener_.next) {
    if (!listener_.store) listener_.store = deps_.make_store();
    listener_.sent_at = now;
    listener_.give_up_at = now + timing::kListenSlice + timing::kListenGrace;
    listener_.request =
        listener_.store->wait_for_wake(claim_.name, held_lock_.owner, timing::kListenSlice);
    rounds_ = 0;
  }
}

// Waits until something can be done. Returns true if the main thread calls.
bool Renewer::wait() {
  // A request that is done immediately must not be polled for.
  TimePoint now = BootClock::now();
  bool ready = attempt_over(renewal_, now) || attempt_over(listener_, now);
  fds_.clear();
  fds_.push_back({notify_fd_.get(), POLLIN, 0});
  if (++rounds_ > timing::kRoundsARequest) util::poll_until(fds_, now + timing::kIdleRoundPause);
  if (renewal_.request && !ready) renewal_.request->wants(fds_);
  if (listener_.request && !ready) listener_.request->wants(fds_);
  TimePoint until = ready ? now : std::min(due(renewal_), due(listener_));
  until = std::min(until, drive_stragglers(now));
  if (completion_) {
    completion_->wants(fds_);
    until = std::min(until, completion_->due());
  }
  util::poll_until(fds_, until);
  return fds_.front().revents != 0;
}

// Drives requests to the servers for which a renewal did not wait. Returns until when there is
// nothing to do for them.
TimePoint Renewer::drive_stragglers(TimePoint now) {
  if (!renewal_.stragglers) return TimePoint::max();
  renewal_.stragglers->advance(now);
  if (!renewal_.stragglers->has_stragglers()) {
    renewal_.stragglers.reset();
    return TimePoint::max();
  }
  renewal_.stragglers->wants(fds_);
  return renewal_.stragglers->due();
}

void Renewer::settle_renewal(TimePoint now) {
  if (!attempt_over(renewal_, now)) return;
  handle_reply(now, take<lock::RenewReply>(renewal_));
  renewal_.next = renew_again_ ? now : deps_.lease.next_attempt();
}

// A wake is a hint that an operator broke the lock. A broken connection is a hint that the server
// restarted or that another server is master. Either brings a renewal forward, and only its reply
// counts.
void Renewer::settle_listener(TimePoint now) {
  if (!attempt_over(listener_, now)) return;
  const auto wake = take<lock::Wake>(listener_);
  cut_ = cut_ || !wake;
  if (wake ? *wake == lock::Wake::woken : listener_backoff_ == Millis(0)) renew_soon(now);
  // A server that answers immediately, again and again, must not occupy a processor.
  if (wake && now - listener_.sent_at >= timing::kBriefRound) {
    listener_backoff_ = Millis(0);
    listener_.next = now;
    return;
  }
  listener_backoff_ =
      std::clamp(listener_backoff_ * 2, timing::kFirstListenBackoff, timing::kLongestListenBackoff);
  listener_.next = now + listener_backoff_;
}

void Renewer::set_record(const std::string& record) {
  {
    std::lock_guard hold(record_mutex_);
    if (record == new_record_) return;
    new_record_ = record;
  }
  notify(notify_fd_);
}

void Renewer::handle_notify(TimePoint now) {
  uint64_t calls = 0;
  [[maybe_unused]] ssize_t got = read(notify_fd_.get(), &calls, sizeof calls);
  std::lock_guard hold(record_mutex_);
  if (new_record_.empty() || new_record_ == claim_.record) return;
  claim_.record = new_record_;
  record_changed_ = true;
  renew_soon(now);
}

void Renewer::renew_soon(TimePoint now) {
  renew_again_ = true;  // a renewal in flight may have been too early to see the break
  renewal_.next = now;
}

void Renewer::handle_reply(TimePoint now, Result<lock::RenewReply> reply) {
  if (!reply) return failed(now, std::move(reply).error());
  if (auto* how = std::get_if<lock::Lost>(&*reply)) {
    deps_.lease.lost(std::move(*how));
    over_ = true;
    notify(lost_fd_);
    return;
  }
  if (std::holds_alternative<lock::Upgrade>(*reply)) {
    return failed(
        now, {ErrorKind::internal,
              util::format("{}: the server stores another mode for this lock than rlock requested",
                           renewal_.store->server())});
  }
  deps_.lease.renewed(renewal_.sent_at, now);
  const bool cut = std::exchange(cut_, false) || failures_ > 0;
  failures_ = 0;
  if (std::exchange(outage_reported_, false)) {
    deps_.observer.on(RenewedAgain{std::chrono::duration_cast<Millis>(now - failing_since_)});
  } else if (cut) {
    deps_.observer.on(ConnectedAgain{renewal_.store->server()});
  }
  bool restored = std::get<lock::Renewal>(*reply) == lock::Renewal::restored;
  emit(EventKind::renewed, restored ? "restored: the server had lost it" : "");
}

void Renewer::failed(TimePoint now, Error why) {
  deps_.lease.failed(renewal_.sent_at, now, why);
  emit(EventKind::renew_failed, why.text);
  warn_of_outage(now, why);
}

// rlock restores a cut connection immediately, which is not worth a line.
void Renewer::warn_of_outage(TimePoint now, const Error& why) {
  constexpr Millis kWorthALine{1000};
  if (++failures_ == 1) failing_since_ = renewal_.sent_at;
  if (failures_ < 2 || now - failing_since_ < kWorthALine || outage_reported_) return;
  const auto left = std::chrono::floor<Millis>(deps_.lease.view().terminate_at - now);
  if (left <= Millis(0)) return;  // too late: the message at the end says why
  outage_reported_ = true;
  deps_.observer.on(RenewalsFail{why, left, deps_.lease.ends_command()});
}

void Renewer::emit(EventKind kind, std::string detail) const {
  deps_.observer.on(Event{kind, BootClock::now(), held_lock_.token, std::move(detail)});
}

}  // namespace rlock::run
