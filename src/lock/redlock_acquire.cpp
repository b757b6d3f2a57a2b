#include "lock/redlock_acquire.hpp"

#include <algorithm>

#include "lock/lease.hpp"

namespace rlock::lock {

using util::Error;
using util::Result;

RedlockAcquire::RedlockAcquire(std::vector<Member>& members, const Electorate& electorate,
                               util::Random& random, QuorumAcquire::Try one)
    : members_(members),
      electorate_(electorate),
      random_(random),
      try_(std::move(one)),
      limit_(server_limit(try_.call.ttl)) {
  asking_.emplace(
      members_, [this](LockStore& store, size_t, TimePoint) { return store.acquire(try_.call); },
      limit_);
}

void RedlockAcquire::wants(std::vector<pollfd>& out) const {
  if (giving_back_) return giving_back_->wants(out);
  if (asking_) asking_->wants(out);
}

TimePoint RedlockAcquire::due() const {
  if (!giving_back_) return asking_ ? std::min(asking_->due(), close_at_) : TimePoint::min();
  return giving_back_->open() == 0 ? pause_until_ : std::min(giving_back_->due(), close_at_);
}

bool RedlockAcquire::advance(TimePoint now) {
  if (!started_) started_ = now;
  if (asking_) hear(now);
  if (!giving_back_) return result_.has_value();
  giving_back_->advance(now);
  return now >= close_at_ || (giving_back_->open() == 0 && now >= pause_until_);
}

Result<AcquireReply> RedlockAcquire::take() {
  try_.splits = split_ ? try_.splits + 1 : 0;
  return *std::move(result_);
}

void RedlockAcquire::hear(TimePoint now) {
  asking_->advance(now);
  answered_ = asking_->answered();
  const Tally heard = tally(asking_->ballots());
  const size_t majority = electorate_.majority();
  if (heard.granted >= majority) {
    if (now >= lease_deadline(*started_, try_.call.ttl)) return try_again(heard, now);
    asking_.reset();
    result_ = AcquireReply(Granted{{}, try_.call.owner});
    return;
  }
  const size_t open = asking_->open();
  const bool enough = heard.answered() >= majority;
  if (enough) close_at_ = std::min(close_at_, now + straggler_grace(now - *started_));
  const bool out_of_reach = heard.granted + open < majority;
  if ((enough && out_of_reach) || open == 0 || now >= close_at_) not_granted(heard, now);
}

void RedlockAcquire::not_granted(const Tally& heard, TimePoint now) {
  const size_t majority = electorate_.majority();
  if (heard.answered() < majority) {
    Error error = too_few(electorate_, errors_of(asking_->ballots()));
    error.text = "cannot acquire \"" + try_.call.name.text() + "\": " + error.text;
    return give_back(std::move(error), now);
  }
  const bool rival_holds = heard.rival && heard.rival->servers >= majority;
  if (!waits() && (rival_holds || try_.splits >= kMostSplits)) {
    return give_back(AcquireReply(Busy{heard.rival, 0}), now);
  }
  if (!rival_holds) return try_again(heard, now);
  give_back(AcquireReply(Queued{{}, 0, heard.look_again, heard.rival}), now);
}

void RedlockAcquire::try_again(const Tally& heard, TimePoint now) {
  split_ = true;
  const Millis pause = split_pause(try_.splits, random_);
  if (waits()) {
    const Millis look_again = std::max(pause, heard.look_again.value_or(pause));
    return give_back(AcquireReply(Queued{{}, 0, look_again, heard.rival}), now);
  }
  pause_until_ = now + pause;
  give_back(AcquireReply(More{}), now);
}

// Everywhere: what a silent server has taken, or takes later, no further try would meet. Not for
// long: the next try, or the way out, does not wait for those that hang.
void RedlockAcquire::give_back(Result<AcquireReply> then, TimePoint now) {
  result_ = std::move(then);
  close_at_ = std::max(pause_until_, now + kGiveBack);
  asking_.reset();  // its connections are wanted
  giving_back_.emplace(
      members_,
      [call = CancelCall{try_.call.name, try_.call.owner}](LockStore& store, size_t, TimePoint) {
        return store.cancel(call);
      },
      limit_, Turn::instead);
}

}  // namespace rlock::lock
