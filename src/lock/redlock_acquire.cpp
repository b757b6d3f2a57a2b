#include "lock/redlock_acquire.hpp"

#include <algorithm>

#include "lock/lease.hpp"

namespace rlock::lock {

using util::Result;

void RedlockAcquire::granted(const Tally& heard, TimePoint now) {
  if (now >= lease_deadline(*started_, try_.call.ttl)) return try_again(heard, now);
  asking_.reset();
  result_ = AcquireReply(Granted{{}, try_.call.owner});
}

void RedlockAcquire::not_granted(const Tally& heard, TimePoint now) {
  const size_t majority = electorate_.majority();
  if (heard.answered() < majority) return give_back(too_few_answered(), now, now);
  const bool rival_holds = heard.rival && heard.rival->servers >= majority;
  if (!waits() && (rival_holds || try_.splits >= kMostSplits)) {
    return give_back(AcquireReply(Busy{heard.rival, 0}), now, now);
  }
  if (!rival_holds) return try_again(heard, now);
  give_back(AcquireReply(Queued{{}, 0, heard.look_again, heard.rival}), now, now);
}

void RedlockAcquire::try_again(const Tally& heard, TimePoint now) {
  const Millis pause = pause_after_split();
  if (waits()) {
    const Millis look_again = std::max(pause, heard.look_again.value_or(pause));
    return give_back(AcquireReply(Queued{{}, 0, look_again, heard.rival}), now, now);
  }
  give_back(AcquireReply(More{}), now, now + pause);
}

// Everywhere: what a silent server has taken, or takes later, no further try would meet. Not for
// long: the next try, or the way out, does not wait for those that hang.
void RedlockAcquire::give_back(Result<AcquireReply> then, TimePoint now, TimePoint pause_until) {
  result_ = std::move(then);
  auto ask = [call = CancelCall{try_.call.name, try_.call.owner}](
                 LockStore& store, size_t, TimePoint) { return store.cancel(call); };
  QuorumTry::give_back(std::move(ask), now + kGiveBack, pause_until);
}

}  // namespace rlock::lock
