#include "lock/quorum/redlock.hpp"

#include <algorithm>

#include "lock/lease.hpp"
#include "lock/timing.hpp"

namespace rlock::lock {
void RedlockAcquire::on_granted(const Summary& totals, TimePoint now) {
  if (now >= lease_deadline(*started_, params_.call.ttl)) return try_again(totals, now);
  conclude(Granted{{}, params_.call.owner});
}

void RedlockAcquire::on_not_granted(const Summary& totals, TimePoint now) {
  const size_t majority = quorum_.majority();
  if (totals.answered() < majority) return cancel_try(too_few_answered(), now);
  const bool contender_holds = totals.contender_servers >= majority;
  if (!waits() && (contender_holds || params_.ties >= kMaxTies)) {
    return cancel_try(AcquireReply(Busy{totals.contender, 0}), now);
  }
  if (!contender_holds) return try_again(totals, now);
  cancel_try(AcquireReply(Queued{{}, 0, totals.look_again, totals.contender, {}}), now);
}

void RedlockAcquire::try_again(const Summary& totals, TimePoint now) {
  const Millis pause = pause_after_tie();
  if (waits()) {
    const Millis look_again = std::max(pause, totals.look_again.value_or(pause));
    return cancel_try(AcquireReply(Queued{{}, 0, look_again, totals.contender, {}}), now);
  }
  cancel_try(AcquireReply(RetryNow{}), now, pause);
}

// Cancels at every server, because no further try would notice what a silent server has granted or
// grants later. Waits only for a moment, so that hanging servers do not delay the next try, or the
// caller.
void RedlockAcquire::cancel_try(Result<AcquireReply> then, TimePoint now, Millis pause) {
  result_ = std::move(then);
  auto make_request = [call = CancelCall{params_.call.name, params_.call.owner}](
                          LockServer& store, size_t, TimePoint) {
    return where_reached<CancelReply>(store, [&](auto& one) { return one.cancel(call); });
  };
  begin_cancelling(std::move(make_request), now + timing::kTryCancelTime, now + pause);
}

InFlight<AcquireReply> RedlockStore::acquire(const AcquireCall& call) {
  if (auto fit = fits_quorum(call); !fit) {
    return ready<AcquireReply>(std::move(fit).error());
  }
  if (acquisition_ && acquisition_->owner == call.owner) {
    acquisition_->tried = Owner::fresh(sources_.random);
  } else {
    acquisition_ = Acquisition{call.owner, call.owner};
  }
  AcquireCall one = call;
  one.owner = acquisition_->tried;
  return std::make_unique<RedlockAcquire>(members_, quorum_, sources_.random,
                                          QuorumTry::Params{std::move(one), acquisition_->ties});
}

InFlight<CancelReply> RedlockStore::cancel(const CancelCall& call) {
  CancelCall tried = call;
  if (acquisition_ && acquisition_->owner == call.owner) tried.owner = acquisition_->tried;
  return QuorumStore::cancel(tried);
}

// The servers for which a grant did not wait still receive it. Renewals only extend, so they bring
// nothing to a server that has not answered by then.
InFlight<GrantReach> RedlockStore::complete_grant() {
  auto nothing_more = [](LockServer&, size_t, TimePoint) { return InFlight<GrantReach>(); };
  auto merge = [](const Replies<GrantReach>&,
                  Collecting collecting) -> std::optional<Result<GrantReach>> {
    if (collecting == Collecting::open) return std::nullopt;
    return GrantReach::everywhere;
  };
  return std::make_unique<QuorumRequest<GrantReach>>(
      std::make_unique<Broadcast<GrantReach>>(members_, nothing_more, Millis(0)),
      quorum_.majority(), WaitFor::certainty, merge);
}

InFlight<HistoryRows> RedlockStore::history(const LockName& name, uint64_t rows) {
  return members_.front().store->history(name, rows);
}

InFlight<NamesPage> RedlockStore::list_names(const std::string& cursor) {
  return members_.front().store->list_names(cursor);
}

InFlight<Wake> RedlockStore::wait_for_wake(const LockName& name, const Owner& owner, Millis slice) {
  return members_.front().store->wait_for_wake(name, owner, slice);
}

}  // namespace rlock::lock
