#pragma once

#include <functional>

#include "lock/poller.hpp"

namespace rlock::lock {

struct WaitLimits {
  // Waiting: one absolute deadline under contention and wake-ups alike; max() for endless.
  TimePoint deadline = TimePoint::max();
  // To the first answer of the server.
  Millis first_contact{2000};
  // Without a deadline: how long a lost server is looked for while queued. [CLI.md]
  Millis outage{60'000};
};

struct Acquired {
  Token token;
  TimePoint sent_at;  // before the request that was granted: where the lease counts from
  Owner owner;        // who holds it: the caller's, or that of the try which won
};
struct TimedOut {
  std::optional<Holder> holder;
};
struct Interrupted {};
using WaitResult = std::variant<Acquired, Busy, TimedOut, Gone, Interrupted>;

class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  virtual void queued(const Queued&) {}
  virtual void trouble(const util::Error&) {}
  // Once: the server does not keep a waiter waiting, which asks about once a second from now on.
  virtual void must_poll(const util::Error&) {}
  // How often tick() comes while waiting; 0 for never.
  virtual Millis tick_every() const { return Millis(0); }
  virtual void tick() {}
};

// Acquires: asks, waits for the wake at the server, asks again, keeps the place in the queue over
// reconnects. Whatever it does not return as Acquired it has given back, as far as a server
// answered in what is left of the wait, or in half a second: on a timed-out wait, an interrupt or
// an error nothing stays in the queue. [PROTOCOL, acquire]
class WaitLoop {
 public:
  WaitLoop(LockStore& store, Poller& poller, util::Random& random, WaitObserver& observer)
      : store_(store), poller_(poller), random_(random), observer_(observer) {}

  util::Result<WaitResult> acquire(AcquireCall call, const WaitLimits& limits);

  // Gives back what the owner has, waiting or granted, by `until`; an interrupt does not stop it.
  util::Result<CancelReply> give_back(const CancelCall& call, TimePoint until);

 private:
  // One acquisition under way.
  struct Attempt {
    AcquireCall call;
    WaitLimits limits;
    TimePoint started;
    std::optional<TimePoint> answered;  // the last answer of the server
    std::optional<Holder> holder;
    std::optional<util::Error> trouble;  // since the last answer
    Millis backoff{0};
    int sweeps = 0;          // answered with More
    int brief_rounds = 0;    // in a row, of asking and waiting
    int failed_waits = 0;    // in a row
    bool must_poll = false;  // and the observer knows

    bool waits() const { return call.queueing == Queueing::wait; }
    // Until when a request that is sent now is waited for.
    TimePoint ends(TimePoint sent_at) const;
  };

  std::optional<util::Result<WaitResult>> step(Attempt& attempt);
  std::optional<util::Result<WaitResult>> read(Attempt& attempt, AcquireReply reply,
                                               TimePoint sent_at);
  std::optional<util::Result<WaitResult>> wait(Attempt& attempt, const Queued& queued);
  std::optional<util::Result<WaitResult>> waited(Attempt& attempt, util::Result<Wake> wake,
                                                 Millis took);
  std::optional<util::Result<WaitResult>> rest(Attempt& attempt, TimePoint until, Millis pause);
  std::optional<util::Result<WaitResult>> recover(Attempt& attempt, util::Error error);
  util::Result<WaitResult> leave(const Attempt& attempt, util::Result<WaitResult> with);
  Drive drive_ticking(Request& request, TimePoint deadline);
  Millis slice(const Queued& queued);
  Millis spread(Millis least, Millis most);

  LockStore& store_;
  Poller& poller_;
  util::Random& random_;
  WaitObserver& observer_;
};

}  // namespace rlock::lock
