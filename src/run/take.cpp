#include "run/take.hpp"

#include <poll.h>

#include "lock/timing.hpp"
#include "run/run_held.hpp"
#include "util/random.hpp"

namespace rlock::run {
namespace {

// Passes the wait on to the observer, and reports once that a wait has begun.
class WaitEvents final : public lock::WaitObserver {
 public:
  WaitEvents(Observer& observer, EarlyGuard* early) : observer_(observer), early_(early) {}
  void awaiting_reply() override {
    if (early_ != nullptr) early_->prepare();
  }
  void not_granted() override {
    if (early_ != nullptr) early_->discard();
  }
  void queued(const lock::Queued& place) override {
    if (!reported_) {
      observer_.event({EventKind::enqueued, BootClock::now(), {}, {}});
      reported_ = true;
    }
    observer_.queued(place);
  }
  Millis ask_again_after() const override { return observer_.ask_again_after(); }
  void transient_error(const Error& error) override { observer_.transient_error(error); }
  void must_poll(const Error& error) override { observer_.must_poll(error); }
  Millis tick_every() const override { return observer_.tick_every(); }
  void tick() override { observer_.tick(); }

 private:
  Observer& observer_;
  EarlyGuard* early_;
  bool reported_ = false;
};

bool readable(int fd) {
  pollfd polled{fd, POLLIN, 0};
  return fd >= 0 && poll(&polled, 1, 0) > 0;
}

std::variant<AcquiredLease, CalledOff, RunOutcome> interrupted(int signal, int call_off) {
  if (signal == 0 && readable(call_off)) return CalledOff{};
  return RunOutcome(WaitSignaled{signal});
}

RunOutcome not_acquired(lock::WaitResult result) {
  if (auto* busy = std::get_if<lock::Busy>(&result)) return NotAcquired{std::move(*busy)};
  if (auto* late = std::get_if<lock::TimedOut>(&result)) return NotAcquired{std::move(*late)};
  if (auto* done = std::get_if<lock::AlreadyDone>(&result)) return NotAcquired{std::move(*done)};
  if (auto* failed = std::get_if<lock::FailedTooOften>(&result)) return NotAcquired{*failed};
  if (auto* newer = std::get_if<lock::Superseded>(&result)) return NotAcquired{std::move(*newer)};
  return NotAcquired{std::get<lock::OwnerEnded>(std::move(result))};
}

RunOutcome without_replicas(Confirmed why) {
  if (auto* lost = std::get_if<lock::Lost>(&why))
    return LeaseLost{{std::move(*lost), {}}, true, {}};
  return std::get<Error>(std::move(why));
}

}  // namespace

std::variant<AcquiredLease, CalledOff, RunOutcome> acquire_lock(Plan& plan, lock::LockStore& store,
                                                                Observer& observer,
                                                                Signals& signals, int call_off,
                                                                EarlyGuard* early) {
  lock::SystemPoller poller(signals.fd(), call_off);
  util::SystemRandom random;
  WaitEvents events(observer, early);
  lock::WaitLoop wait(store, poller, random, events);
  auto waited = wait.acquire(plan.claim, plan.limits);
  if (!waited) return RunOutcome(std::move(waited).error());
  auto* acquired = std::get_if<lock::Acquired>(&*waited);
  if (std::holds_alternative<lock::Interrupted>(*waited)) {
    return interrupted(signals.next_number(), call_off);
  }
  if (acquired == nullptr) return not_acquired(std::move(*waited));
  plan.claim.owner = acquired->owner;
  auto cancel_grant = [&](int signal, RunOutcome why) {
    events.not_granted();
    // Where no server answers the lease ends by itself, and nothing has run under it.
    [[maybe_unused]] auto cancel_reply = wait.cancel({plan.claim.name, plan.claim.owner},
                                                     poller.now() + timing::kUnusedGrantCancelTime);
    const bool unwanted = signal != 0 || readable(call_off);
    return unwanted ? interrupted(signal, call_off) : std::move(why);
  };
  if (acquired->unconfirmed) {
    if (plan.claim.queueing == lock::Queueing::wait) {
      observer.awaiting_replicas(*acquired->unconfirmed);
    }
    auto confirmed = await_replicas(plan, *acquired, store, poller);
    const auto* sent_at = std::get_if<TimePoint>(&confirmed);
    if (sent_at == nullptr) {
      return cancel_grant(signals.next_number(), without_replicas(std::move(confirmed)));
    }
    acquired->sent_at = *sent_at;
  }
  observer.event({EventKind::acquired, BootClock::now(), acquired->token, {}, acquired->owner});

  auto fresh = fresh_lease(plan, *acquired, store, poller);
  // A signal that came with the grant ends the wait too: nothing must start.
  const int signal = signals.next_number();
  if (signal == 0 && !readable(call_off) && fresh.granted_at) {
    return AcquiredLease{acquired->token, *fresh.granted_at, lock::GrantReach::everywhere,
                         acquired->slot, acquired->asked_at};
  }
  return cancel_grant(signal, LeaseLost{std::move(fresh.lost), true, {}});
}

}  // namespace rlock::run
