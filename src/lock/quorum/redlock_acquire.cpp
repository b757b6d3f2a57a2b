#include "lock/quorum/redlock_acquire.hpp"

#include <algorithm>

#include "lock/lease.hpp"
#include "lock/timing.hpp"

namespace rlock::lock {

void RedlockAcquire::granted(const Summary& totals, TimePoint now) {
  if (now >= lease_deadline(*started_, params_.call.ttl)) return try_again(totals, now);
  asking_.reset();
  result_ = AcquireReply(Granted{{}, params_.call.owner});
}

void RedlockAcquire::not_granted(const Summary& totals, TimePoint now) {
  const size_t majority = quorum_.majority();
  if (totals.answered() < majority) return cancel_try(too_few_answered(), now, now);
  const bool contender_holds = totals.contender && totals.contender->servers >= majority;
  if (!waits() && (contender_holds || params_.ties >= kMaxTies)) {
    return cancel_try(AcquireReply(Busy{totals.contender, 0}), now, now);
  }
  if (!contender_holds) return try_again(totals, now);
  cancel_try(AcquireReply(Queued{{}, 0, totals.look_again, totals.contender}), now, now);
}

void RedlockAcquire::try_again(const Summary& totals, TimePoint now) {
  const Millis pause = pause_after_tie();
  if (waits()) {
    const Millis look_again = std::max(pause, totals.look_again.value_or(pause));
    return cancel_try(AcquireReply(Queued{{}, 0, look_again, totals.contender}), now, now);
  }
  cancel_try(AcquireReply(RetryNow{}), now, now + pause);
}

// Everywhere: what a silent server has taken, or takes later, no further try would meet. Not for
// long: the next try, or the way out, does not wait for those that hang.
void RedlockAcquire::cancel_try(Result<AcquireReply> then, TimePoint now, TimePoint pause_until) {
  result_ = std::move(then);
  auto make_request = [call = CancelCall{params_.call.name, params_.call.owner}](
                          LockStore& store, size_t, TimePoint) { return store.cancel(call); };
  QuorumTry::cancel_try(std::move(make_request), now + timing::kTryCancelTime, pause_until);
}

}  // namespace rlock::lock
