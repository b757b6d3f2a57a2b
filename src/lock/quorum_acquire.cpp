#include "lock/quorum_acquire.hpp"

#include "lock/lease.hpp"
#include "lock/quorum.hpp"

namespace rlock::lock {

using util::Result;

void QuorumAcquire::wants(std::vector<pollfd>& out) const {
  if (confirming_) return confirming_->wants(out);
  QuorumTry::wants(out);
}

TimePoint QuorumAcquire::due() const {
  return confirming_ ? confirming_->due() : QuorumTry::due();
}

void QuorumAcquire::granted(const Tally& heard, TimePoint) {
  token_ = heard.greatest;
  const AcquireCall& call = try_.call;
  RenewCall back{call.name, call.owner};
  back.token = token_;
  back.ttl = call.ttl;
  back.min_hold = call.min_hold;
  back.attended = call.attended;
  back.record = call.record;
  back.attempt = call.attempt;
  back.ahead = kLongestClockGap;
  asking_.reset();
  confirming_.emplace(
      members_,
      [back = std::move(back)](LockStore& store, size_t, TimePoint) { return store.renew(back); },
      limit_);
}

void QuorumAcquire::go_on(TimePoint now) {
  if (!confirming_) return;
  confirming_->advance(now);
  size_t confirmed = 0;
  for (const auto& ballot : confirming_->ballots()) {
    confirmed += ballot && *ballot && std::holds_alternative<Renewal>(**ballot) ? 1 : 0;
  }
  const size_t majority = electorate_.majority();
  if (confirmed >= majority && now < lease_deadline(*started_, try_.call.ttl)) {
    confirming_.reset();
    result_ = AcquireReply(Granted{token_});
    return;
  }
  bool possible = confirmed < majority && confirmed + confirming_->open() >= majority;
  if (possible) return;
  const Millis pause = pause_after_split();
  give_back(try_again({}, pause), now, waits() ? now : now + pause);
}

// A place in the queue is kept: another try comes after a wake, or when it is time to look again.
AcquireReply QuorumAcquire::try_again(const Tally& tally, Millis pause) const {
  if (!waits()) return More{};
  return Queued{try_.call.ticket, tally.position, std::min(pause, tally.look_again.value_or(pause)),
                tally.rival};
}

void QuorumAcquire::not_granted(const Tally& heard, TimePoint now) {
  // A server does not believe in a ticket of the future: the same place at all from here on.
  if (heard.ticket) try_.call.ticket = std::min(try_.call.ticket, *heard.ticket);
  const size_t majority = electorate_.majority();
  if (heard.gone) return give_back(AcquireReply(*heard.gone), now, now);
  if (heard.answered() < majority) return give_back(too_few_answered(), now, now);
  const bool rival_holds = heard.rival && heard.rival->servers >= majority;
  const bool in_line = heard.queued + heard.granted >= majority;
  if (waits() && in_line && rival_holds) {
    Queued place{try_.call.ticket, heard.position, heard.look_again, heard.rival};
    return give_back(AcquireReply(std::move(place)), now, now);
  }
  const bool enough = rival_holds || try_.splits >= kMostSplits;
  if (waits() ? !in_line && heard.busy > 0 : enough) {
    return give_back(AcquireReply(Busy{heard.rival, heard.waiters}), now, now);
  }
  const Millis pause = pause_after_split();
  give_back(try_again(heard, pause), now, waits() ? now : now + pause);
}

// Where something of this try may be. What is silent is asked, too, where nothing may stay behind;
// one that only waits meets its own grant there in the next try.
std::vector<bool> QuorumAcquire::debtors() const {
  std::vector<bool> owes(members_.size(), true);
  if (!asking_ || holds<Gone>()) return owes;
  for (size_t i = 0; i < owes.size(); ++i) {
    const auto& ballot = asking_->ballots()[i];
    if (!ballot || !*ballot) {
      owes[i] = !holds<Queued>();
    } else {
      owes[i] = std::holds_alternative<Granted>(**ballot) ||
                (std::holds_alternative<Queued>(**ballot) && holds<Busy>());
    }
  }
  return owes;
}

CancelCall QuorumAcquire::withdrawal() const {
  CancelCall call{try_.call.name, try_.call.owner};
  if (holds<Gone>()) return call;
  call.how = CancelHow::yielded;
  call.attempt = try_.call.attempt;
  if (waits() && !holds<Busy>()) call.ticket = try_.call.ticket;
  return call;
}

// One that stays in line need not hear that its grants are back: it sends on the same connections.
void QuorumAcquire::give_back(Result<AcquireReply> then, TimePoint now, TimePoint pause_until) {
  result_ = std::move(then);
  auto ask = [owes = debtors(), call = withdrawal()](LockStore& store, size_t member,
                                                     TimePoint) -> InFlight<CancelReply> {
    return owes[member] ? store.cancel(call) : nullptr;
  };
  confirming_.reset();  // its connections are wanted
  QuorumTry::give_back(std::move(ask), holds<Queued>() ? now : now + kGiveBack, pause_until);
}

}  // namespace rlock::lock
