#include "run/renewer.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "util/boot_timer.hpp"
#include "util/mutant.hpp"

namespace rlock::run {
namespace {

using namespace std::chrono_literals;

// A short command needs no ear for operators: the second connection waits for this. [PROTOCOL]
constexpr auto kListenAfter = 1s;
constexpr auto kSlice = 30s;
constexpr auto kSliceGrace = 5s;  // for the answer to a slice that is over
constexpr Millis kFirstListenerBackoff{250};
constexpr Millis kLongestListenerBackoff{15'000};
constexpr size_t kThreadStack = 512UL * 1024;

util::Error refused(const char* what, int error) {
  return {util::ErrorKind::system,
          std::string("cannot start the renewal thread: ") + what + ": " + std::strerror(error)};
}

void ring(const util::Fd& event) {
  uint64_t one = 1;
  // Cannot fail but by a full counter, and then it is readable already.
  [[maybe_unused]] ssize_t written = write(event.get(), &one, sizeof one);
}

// Goes as far as it can: true when the request is done or its time is over.
template <class Flight>
bool settled(Flight& flight, TimePoint now) {
  if (!flight.request) return false;
  flight.done = flight.done || flight.request->advance(now);
  return flight.done || now >= flight.give_up_at;
}

// The reply, or an error when the attempt was given up.
template <class Reply, class Flight>
util::Result<Reply> take(Flight& flight) {
  auto request = std::move(flight.request);
  if (std::exchange(flight.done, false)) {
    auto reply = request->take();
    if (request->lingers()) flight.rest = std::move(request);
    return reply;
  }
  return util::Error{util::ErrorKind::unavailable, flight.store->server() + ": no answer in time",
                     util::Retry::later};
}

template <class Flight>
TimePoint due(const Flight& flight) {
  return flight.request ? std::min(flight.give_up_at, flight.request->due()) : flight.next;
}

}  // namespace

util::Result<std::unique_ptr<Renewer>> Renewer::make(const lock::RenewCall& call,
                                                     const Doors& doors) {
  std::unique_ptr<Renewer> renewer(new Renewer(call, doors));
  renewer->called_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  renewer->lost_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!renewer->called_ || !renewer->lost_) return refused("eventfd", errno);
  return renewer;
}

util::Status Renewer::start() {
  if (doors_.granted_everywhere && !doors_.granted_everywhere()) {
    doors_.lease.complete_grant(util::BootClock::now());
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kThreadStack);
  int error = pthread_create(&thread_, &attributes, enter, this);
  pthread_attr_destroy(&attributes);
  if (error != 0) return refused("pthread_create", error);
  running_ = true;
  return util::Done{};
}

void Renewer::stop() {
  if (!running_) return;
  stopping_ = true;
  ring(called_);
  pthread_join(thread_, nullptr);
  running_ = false;
}

void* Renewer::enter(void* self) {
  static_cast<Renewer*>(self)->loop();
  return nullptr;
}

void Renewer::loop() {
  listener_.next = util::BootClock::now() + kListenAfter;
  renewal_.next = doors_.lease.next_attempt();
  while (!over_) {
    send_what_is_due(util::BootClock::now());
    const bool called = wait();
    if (stopping_) break;
    TimePoint now = util::BootClock::now();
    if (called) answer_call(now);
    settle_listener(now);
    settle_renewal(now);
  }
  renewal_.request.reset();
  renewal_.rest.reset();
  listener_.request.reset();
}

void Renewer::send_what_is_due(TimePoint now) {
  if (!renewal_.request && now >= renewal_.next) {
    if (!renewal_.store) renewal_.store = doors_.make_store();
    woken_ = false;
    renewal_.sent_at = util::BootClock::now();
    renewal_.give_up_at = doors_.lease.attempt_deadline(renewal_.sent_at);
    call_.valid_until = doors_.lease.view().deadline;
    renewal_.rest.reset();
    renewal_.request = renewal_.store->renew(call_);
  }
  if (!listener_.request && now >= listener_.next) {
    if (!listener_.store) listener_.store = doors_.make_store();
    listener_.sent_at = now;
    listener_.give_up_at = now + kSlice + kSliceGrace;
    listener_.request = listener_.store->wait_for_wake(call_.name, call_.owner, kSlice);
  }
}

// Until something can be done; true when the main thread calls.
bool Renewer::wait() {
  // A request that is done at once is not to be polled for.
  TimePoint now = util::BootClock::now();
  bool ready = settled(renewal_, now) || settled(listener_, now);
  fds_.clear();
  fds_.push_back({called_.get(), POLLIN, 0});
  if (renewal_.request && !ready) renewal_.request->wants(fds_);
  if (listener_.request && !ready) listener_.request->wants(fds_);
  TimePoint until = ready ? now : std::min(due(renewal_), due(listener_));
  until = std::min(until, drive_rest(now));
  util::poll_until(fds_, until);
  return fds_.front().revents != 0;
}

// Until when there is nothing to do for the servers that a renewal did not wait for.
TimePoint Renewer::drive_rest(TimePoint now) {
  if (!renewal_.rest) return TimePoint::max();
  renewal_.rest->advance(now);
  if (!renewal_.rest->lingers()) {
    renewal_.rest.reset();
    return TimePoint::max();
  }
  renewal_.rest->wants(fds_);
  return renewal_.rest->due();
}

void Renewer::settle_renewal(TimePoint now) {
  if (!settled(renewal_, now)) return;
  heard(now, take<lock::RenewReply>(renewal_));
  renewal_.next = woken_ ? now : doors_.lease.next_attempt();
}

// A wake is a hint that an operator broke the lock, a broken connection one that the server
// restarted or that another is master: the renewal that either hastens tells the truth.
void Renewer::settle_listener(TimePoint now) {
  if (!settled(listener_, now)) return;
  auto wake = take<lock::Wake>(listener_);
  if (!wake) {
    if (listener_backoff_ == Millis(0)) hasten(now);
    listener_backoff_ =
        std::clamp(listener_backoff_ * 2, kFirstListenerBackoff, kLongestListenerBackoff);
    listener_.next = now + listener_backoff_;
    return;
  }
  listener_backoff_ = Millis(0);
  listener_.next = now;
  if (*wake == lock::Wake::woken) hasten(now);
}

void Renewer::set_record(const std::string& record) {
  {
    std::lock_guard hold(record_mutex_);
    if (record == new_record_) return;
    new_record_ = record;
  }
  ring(called_);
}

void Renewer::answer_call(TimePoint now) {
  uint64_t calls = 0;
  [[maybe_unused]] ssize_t got = read(called_.get(), &calls, sizeof calls);
  std::lock_guard hold(record_mutex_);
  if (new_record_.empty() || new_record_ == call_.record) return;
  call_.record = new_record_;
  call_.record_changed = true;
  hasten(now);
}

void Renewer::hasten(TimePoint now) {
  woken_ = true;  // a renewal in flight may have been too early to see it
  renewal_.next = now;
}

void Renewer::heard(TimePoint now, util::Result<lock::RenewReply> reply) {
  if (mutant(util::Mutant::renewal_ignored)) return doors_.lease.renewed(renewal_.sent_at, now);
  if (!reply) return failed(now, std::move(reply).error());
  if (auto* how = std::get_if<lock::Lost>(&*reply)) {
    doors_.lease.lost(std::move(*how));
    over_ = true;
    ring(lost_);
    return;
  }
  if (std::holds_alternative<lock::Upgrade>(*reply)) {
    return failed(now,
                  {util::ErrorKind::internal,
                   renewal_.store->server() + ": holds the lock in a mode that was not asked for"});
  }
  doors_.lease.renewed(renewal_.sent_at, now);
  bool put_back = std::get<lock::Renewal>(*reply) == lock::Renewal::put_back;
  tell(EventKind::renewed, put_back ? "put back: the server had lost it" : "");
}

void Renewer::failed(TimePoint now, util::Error why) {
  std::string detail = why.text;
  doors_.lease.failed(renewal_.sent_at, now, std::move(why));
  tell(EventKind::renew_failed, std::move(detail));
}

void Renewer::tell(EventKind kind, std::string detail) const {
  doors_.observer.event({kind, util::BootClock::now(), call_.token, std::move(detail)});
}

}  // namespace rlock::run
