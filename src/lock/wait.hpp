#pragma once

#include <algorithm>

#include "lock/failures.hpp"
#include "lock/poller.hpp"
#include "lock/timing.hpp"

namespace rlock::lock {

struct WaitLimits {
  // The absolute deadline of the wait, however often it wakes up; max() for an endless wait.
  TimePoint deadline = TimePoint::max();
  // To reach the server: of one try, and of all of them if the request does not wait for the lock.
  Millis reach{2000};
  // Without a deadline: how long a waiter retries a server that is away.
  Millis outage{60'000};
  // How long to try while no server has answered anything; nullopt: as long as otherwise.
  // (--fail-open)
  std::optional<Millis> unreached{};

  // Until when a request that failed is sent again. `answered`: when the server carried one out
  // last. `reached`: whether one has answered anything.
  TimePoint retry_until(TimePoint started, Queueing queueing, std::optional<TimePoint> answered,
                        Answered reached) const;
};

struct Acquired {
  Token token;
  TimePoint sent_at;     // before the request that was granted: where the lease counts from
  Owner owner;           // the holder: the caller's owner id, or that of the try which won
  uint64_t slot = 0;     // as granted
  TimePoint asked_at{};  // when the acquisition began
  std::optional<Error> unconfirmed{};  // as of Granted
};
struct TimedOut {
  std::optional<Obstacle> obstacle;  // as the last answer described it, but as old as now
};
struct Interrupted {};
using WaitResult = std::variant<Acquired, Busy, TimedOut, OwnerEnded, Interrupted, AlreadyDone,
                                FailedTooOften, Superseded>;

class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  // Called at most once, while the first request is on its way: time to prepare what a grant will
  // need.
  virtual void awaiting_reply() {}
  // That request, or a later one, has brought no grant.
  virtual void not_granted() {}
  virtual void queued(const Queued&) {}
  // The time in the queue after which queued() is called again, if the wait continues.
  virtual Millis ask_again_after() const { return Millis::max(); }
  virtual void transient_error(const Error&) {}
  // The same, of a server that is away: tried again until then.
  virtual void no_server(const Error& why, TimePoint /*until*/) { transient_error(why); }
  // Called once: the server does not let a waiter block, which polls about once a second from now
  // on.
  virtual void must_poll(const Error&) {}
  // How often tick() comes while waiting; 0 for never.
  virtual Millis tick_every() const { return Millis(0); }
  virtual void tick() {}
};

// Acquires: asks, waits for the wake at the server, asks again, keeps its position in the queue
// over reconnects. Unless it returns Acquired it has cancelled what it had, as far as a server
// answered in what is left of the wait, or in half a second: on a timed-out wait, an interrupt or
// an error nothing stays in the queue. A grant that a failover under way may lose counts as none.
class WaitLoop {
 public:
  WaitLoop(LockStore& store, Poller& poller, util::Random& random, WaitObserver& observer)
      : store_(store), poller_(poller), random_(random), observer_(observer) {}

  // Sets call.asked itself, before each request.
  Result<WaitResult> acquire(AcquireCall call, const WaitLimits& limits);

  // Cancels what the owner has, waiting or granted, by `until`; an interrupt does not stop it.
  Result<CancelReply> cancel(const CancelCall& call, TimePoint until);

 private:
  // One acquisition under way.
  struct WaitState {
    AcquireCall call;
    WaitLimits limits;
    TimePoint started;
    std::optional<TimePoint> answered{};  // the last answer of the server
    Answered reached = Answered::no;      // an error counts too
    Failures failures{};
    std::optional<Obstacle> obstacle{};
    TimePoint queued_at{};                   // when the server described it
    std::optional<Error> transient_error{};  // since the last answer
    Millis backoff{0};
    Millis slice = timing::kWaitSlice;  // that the last answer gave
    int sweeps = 0;                     // answered with RetryNow
    int brief_rounds = 0;               // in a row, of asking and waiting
    int failed_waits = 0;               // in a row
    bool must_poll = false;             // and the observer knows
    bool first = true;                  // no request was sent yet
    bool lost_reply = false;            // a request may still arrive at the server

    bool waits() const { return call.queueing == Queueing::wait; }
    TimePoint retry_until() const {
      return limits.retry_until(started, call.queueing, answered, reached);
    }
    // Far from the head: it asks less often, also after an outage.
    bool at_rest() const { return slice > timing::kWaitSlice; }
    // Whether a heartbeat is all that its requests are for: no other run may have done its work,
    // and no closure lets it pass others.
    bool may_rest() const { return at_rest() && !call.once && !call.while_closed; }
    void set_slice(Millis given) {
      slice = std::clamp(given, timing::kWaitSlice, timing::kLongestWaitSlice);
    }
    // Until when a request that is sent now is waited for.
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
  bool keeps_place(WaitState& state, Queued& queued);
  std::optional<Result<WaitResult>> handle_wake(WaitState& state, Result<Wake> wake, Millis took);
  std::optional<Result<WaitResult>> pause_before_retry(WaitState& state, TimePoint until,
                                                       Millis pause);
  std::optional<Result<WaitResult>> recover(WaitState& state, Error error);
  Result<WaitResult> refused(const WaitState& state, WaitResult why);
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
