#pragma once

#include <algorithm>

#include "lock/failures.hpp"
#include "lock/held_lock.hpp"
#include "lock/poller.hpp"
#include "lock/timing.hpp"

namespace rlock::lock {

struct WaitLimits {
  // The absolute deadline of the wait, however often it wakes up; max() for no limit.
  TimePoint deadline = TimePoint::max();
  // The time to reach the server: for one try, and for all tries of a request that does not wait
  // for the lock.
  Millis reach{2000};
  // How long a waiter without a deadline retries an unavailable server, and any waiter one whose
  // TLS fails.
  Millis outage{60'000};
  // How long to try while no server has answered anything (--fail-open); nullopt: no special limit.
  std::optional<Millis> unreached{};

  // Until when a failed request is sent again. `answered`: when the server last carried one out.
  // `reached`: whether a server has answered anything.
  TimePoint retry_until(TimePoint started, Queueing queueing, std::optional<TimePoint> answered,
                        Answered reached) const;
};

struct TimedOut {
  // As the last answer described it, adjusted to the present time.
  std::optional<Obstacle> obstacle;
  std::optional<NewerRules> needs{};  // as in Queued
  Ticket ticket{};                    // with which another owner gets this position
};
struct Interrupted {};
using WaitResult = std::variant<HeldLock, Refused, TimedOut, Interrupted>;

class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  // Called at most once, while the first request is in flight: time to prepare what a grant will
  // need.
  virtual void awaiting_reply() {}
  // Called if that request, or a later one, was not granted.
  virtual void not_granted() {}
  virtual void queued(const Queued&) {}
  // The time in the queue after which queued() is called again, if the wait continues.
  virtual Millis ask_again_after() const { return Millis::max(); }
  virtual void transient_error(const Error&) {}
  // The same for an unavailable server, which rlock retries until `until`.
  virtual void no_server(const Error& why, TimePoint /*until*/) { transient_error(why); }
  // Called once if the server does not let a waiter block; from then on the waiter polls about once
  // a second.
  virtual void must_poll(const Error&) {}
  // The interval of tick() while waiting; 0 for never.
  virtual Millis tick_every() const { return Millis(0); }
  virtual void tick() {}
};

// Acquires the lock: asks, waits for the wake at the server, asks again, and keeps its position in
// the queue over reconnects. Unless it returns a HeldLock, it has cancelled what it had, as far as
// a server answered in the rest of the wait, or in half a second: after a timeout, an interrupt or
// an error nothing stays in the queue. A grant that a failover in progress may lose does not count
// as a grant.
class WaitLoop {
 public:
  WaitLoop(LockStore& store, Poller& poller, util::Random& random, WaitObserver& observer)
      : store_(store), poller_(poller), random_(random), observer_(observer) {}

  // Sets call.asked itself, before each request.
  Result<WaitResult> acquire(AcquireCall call, const WaitLimits& limits);

  // Cancels the owner's position or grant by `until`; an interrupt does not stop it.
  Result<CancelReply> cancel(const CancelCall& call, TimePoint until);

 private:
  // The state of one acquisition.
  struct WaitState {
    AcquireCall call;
    WaitLimits limits;
    TimePoint started;
    std::optional<TimePoint> answered{};  // the last answer of the server
    Answered reached = Answered::no;      // Answered::yes even for an error
    Failures failures{};
    std::optional<Obstacle> obstacle{};
    std::optional<NewerRules> needs{};       // as in Queued
    TimePoint queued_at{};                   // when the server described it
    std::optional<Error> transient_error{};  // since the last answer
    Millis backoff{0};
    Millis slice = timing::kWaitSlice;  // from the last answer
    int sweeps = 0;                     // answered with RetryNow
    int brief_rounds = 0;               // consecutive rounds of asking and waiting
    int failed_waits = 0;               // consecutive
    bool must_poll = false;             // the observer was informed
    bool first = true;                  // no request was sent so far
    bool lost_reply = false;            // a request may still arrive at the server

    bool waits() const { return call.queueing == Queueing::wait; }
    TimePoint retry_until() const {
      return limits.retry_until(started, call.queueing, answered, reached);
    }
    // Whether the waiter is far from the head: it asks less often, even after an outage.
    bool is_idle() const { return slice > timing::kWaitSlice; }
    // Whether its requests need only be heartbeats: no other run may have done its work, and no
    // closure lets it overtake others.
    bool may_stay_idle() const { return is_idle() && !call.once && !call.while_closed; }
    void set_slice(Millis given) {
      slice = std::clamp(given, timing::kWaitSlice, timing::kLongestWaitSlice);
    }
    // Until when to wait for the reply to a request that is sent now.
    TimePoint reply_deadline(TimePoint sent_at) const;
  };

  std::optional<Result<WaitResult>> step(WaitState& state);
  std::optional<Result<WaitResult>> handle_reply(WaitState& state, AcquireReply reply,
                                                 TimePoint sent_at);
  std::optional<Result<WaitResult>> handle_grant(WaitState& state, Granted granted,
                                                 TimePoint sent_at);
  std::optional<Result<WaitResult>> await_failover(WaitState& state, Error why);
  std::optional<Result<WaitResult>> wait(WaitState& state, Queued queued);
  std::optional<Result<WaitResult>> wait_once(WaitState& state, const Queued& queued, bool& slept);
  bool keeps_position(WaitState& state, Queued& queued);
  std::optional<Result<WaitResult>> handle_wake(WaitState& state, Result<Wake> wake, Millis took);
  std::optional<Result<WaitResult>> pause_before_retry(WaitState& state, TimePoint until,
                                                       Millis pause);
  std::optional<Result<WaitResult>> recover(WaitState& state, Error error);
  Result<WaitResult> refused(const WaitState& state, Refused why);
  Result<WaitResult> time_out(const WaitState& state);
  Result<WaitResult> cancel_and_return(const WaitState& state, Result<WaitResult> result);
  PollResult drive_ticking(Request& request, TimePoint deadline);
  Millis time_to_block(const WaitState& state, const Queued& queued);
  Millis poll_pause(const WaitState& state);
  Millis pause_after_cut(const WaitState& state);
  Millis pause_after_failure(const WaitState& state);
  Millis random_between(Millis least, Millis most);

  LockStore& store_;
  Poller& poller_;
  util::Random& random_;
  WaitObserver& observer_;
};

}  // namespace rlock::lock
