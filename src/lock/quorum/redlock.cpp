#include "lock/quorum/redlock.hpp"

#include <algorithm>
#include <cstdint>

#include "lock/lease.hpp"
#include "lock/timing.hpp"

namespace rlock::lock {
namespace {

// The servers for which a grant did not wait still receive it.
class GrantStragglers final : public Reply<GrantReach> {
 public:
  explicit GrantStragglers(std::vector<Member>& members) : members_(members) {}

  void wants(std::vector<pollfd>& out) const override {
    for (const Member& member : members_) {
      if (member.pending) member.pending->wants(out);
    }
  }
  TimePoint due() const override {
    TimePoint earliest = TimePoint::max();
    for (const Member& member : members_) {
      if (!member.pending) continue;
      earliest = std::min({earliest, member.pending->due(), member.pending_until});
    }
    return earliest;
  }
  bool advance(TimePoint now) override {
    bool done = true;
    for (Member& member : members_) done = member.ready(now, OnPending::finish) && done;
    return done;
  }
  // Renewals only extend: they bring nothing to a server that has not answered by then.
  Result<GrantReach> take() override { return GrantReach::everywhere; }

 private:
  std::vector<Member>& members_;
};

}  // namespace

void RedlockAcquire::on_granted(const Summary& totals, TimePoint now) {
  if (now >= lease_deadline(*started_, params_.call.ttl)) return try_again(totals, now);
  asking_.reset();
  result_ = AcquireReply(Granted{{}, params_.call.owner});
}

void RedlockAcquire::on_not_granted(const Summary& totals, TimePoint now) {
  const size_t majority = quorum_.majority();
  if (totals.answered() < majority) return cancel_try(too_few_answered(), now, now);
  const bool contender_holds = totals.contender && totals.contender->servers >= majority;
  if (!waits() && (contender_holds || params_.ties >= kMaxTies)) {
    return cancel_try(AcquireReply(Busy{totals.contender, 0}), now, now);
  }
  if (!contender_holds) return try_again(totals, now);
  cancel_try(AcquireReply(Queued{{}, 0, totals.look_again, totals.contender, {}}), now, now);
}

void RedlockAcquire::try_again(const Summary& totals, TimePoint now) {
  const Millis pause = pause_after_tie();
  if (waits()) {
    const Millis look_again = std::max(pause, totals.look_again.value_or(pause));
    return cancel_try(AcquireReply(Queued{{}, 0, look_again, totals.contender, {}}), now, now);
  }
  cancel_try(AcquireReply(RetryNow{}), now, now + pause);
}

// At every server: no further try would meet what a silent server has taken or takes later. But
// only for a moment: the next try, or the caller, does not wait for servers that hang.
void RedlockAcquire::cancel_try(Result<AcquireReply> then, TimePoint now, TimePoint pause_until) {
  result_ = std::move(then);
  auto make_request = [call = CancelCall{params_.call.name, params_.call.owner}](
                          LockServer& store, size_t, TimePoint) {
    return where_reached<CancelReply>(store, [&](auto& one) { return one.cancel(call); });
  };
  QuorumTry::cancel_try(std::move(make_request), now + timing::kTryCancelTime, pause_until);
}

InFlight<AcquireReply> RedlockStore::acquire(const AcquireCall& call) {
  if (auto fit = fits_quorum(call); !fit) {
    return std::make_unique<ReadyReply<AcquireReply>>(std::move(fit).error());
  }
  if (redlock_acquisition_ && redlock_acquisition_->owner == call.owner) {
    redlock_acquisition_->tried = Owner::fresh(sources_.random);
  } else {
    redlock_acquisition_ = RedlockAcquisition{call.owner, call.owner};
  }
  AcquireCall one = call;
  one.owner = redlock_acquisition_->tried;
  return std::make_unique<RedlockAcquire>(
      members_, quorum_, sources_.random,
      QuorumTry::Params{std::move(one), redlock_acquisition_->ties});
}

InFlight<CancelReply> RedlockStore::cancel(const CancelCall& call) {
  CancelCall tried = call;
  if (redlock_acquisition_ && redlock_acquisition_->owner == call.owner)
    tried.owner = redlock_acquisition_->tried;
  return QuorumStore::cancel(tried);
}

InFlight<GrantReach> RedlockStore::complete_grant() {
  return std::make_unique<GrantStragglers>(members_);
}

bool RedlockStore::acquired_here(const Owner& owner) const {
  return redlock_acquisition_ &&
         (redlock_acquisition_->owner == owner || redlock_acquisition_->tried == owner);
}

InFlight<std::vector<HistoryRow>> RedlockStore::history(const LockName& name, uint64_t rows) {
  return members_.front().store->history(name, rows);
}

InFlight<NamesPage> RedlockStore::list_names(const std::string& cursor) {
  return members_.front().store->list_names(cursor);
}

InFlight<Wake> RedlockStore::wait_for_wake(const LockName& name, const Owner& owner, Millis slice) {
  return members_.front().store->wait_for_wake(name, owner, slice);
}

}  // namespace rlock::lock
