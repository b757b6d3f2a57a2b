#include "lock/quorum/acquire.hpp"

#include <algorithm>

#include "lock/lease.hpp"
#include "lock/quorum/quorum.hpp"
#include "lock/timing.hpp"

namespace rlock::lock {

size_t count_renewed(const Replies<RenewReply>& replies) {
  const auto all = answers(replies);
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const RenewReply* reply) {
    return std::holds_alternative<Renewal>(*reply);
  }));
}

void QuorumAcquire::wants(std::vector<pollfd>& out) const {
  if (!confirming_) return QuorumTry::wants(out);
  confirming_->wants(out);
  if (asking_) asking_->wants(out);
}

TimePoint QuorumAcquire::due() const {
  if (!confirming_) return QuorumTry::due();
  TimePoint due = confirming_->due();
  if (asking_) due = std::min(due, asking_->due());
  return confirming_->left_out() > 0 ? std::min(due, ask_rest_at_) : due;
}

void QuorumAcquire::on_granted(const Summary& totals, TimePoint now) {
  token_ = totals.greatest;
  const AcquireCall& call = params_.call;
  RenewCall back{call.name, call.owner};
  back.token = token_;
  back.ttl = call.ttl;
  back.min_hold = call.min_hold;
  back.responsive = call.responsive;
  back.record = call.record;
  back.attempt = call.attempt;
  back.ahead = timing::kLongestClockGap;
  const std::vector<bool> granted = majority_that_granted();
  if (!call.once) asking_.reset();  // else another server may still say that it is done
  ask_rest_at_ = now + std::max<Nanos>(timing::kLeastConfirmTime, now - *started_);
  confirming_ = std::make_unique<Broadcast<RenewReply>>(
      members_,
      [back = std::move(back)](LockStore& store, size_t, TimePoint) { return store.renew(back); },
      limit_);
  confirming_->ask_only(granted);
}

std::vector<bool> QuorumAcquire::majority_that_granted() const {
  std::vector<bool> chosen;
  size_t granted = 0;
  for (const auto& reply : asking_->replies()) {
    chosen.push_back(granted < quorum_.majority() && reply && *reply &&
                     std::holds_alternative<Granted>(**reply));
    granted += chosen.back() ? 1 : 0;
  }
  return chosen;
}

void QuorumAcquire::advance_try(TimePoint now) {
  if (!confirming_ || result_) return;
  if (asking_) {
    asking_->advance(now);
    if (auto done = summarize(asking_->replies()).done) {
      return cancel_try(AcquireReply(*std::move(done)), now, now);
    }
  }
  confirming_->advance(now);
  if (needs_rest(now)) {
    asking_.reset();
    confirming_->ask_rest();
    confirming_->advance(now);
  }
  const size_t confirmed = count_renewed(confirming_->replies());
  const size_t majority = quorum_.majority();
  if (confirmed >= majority && now < lease_deadline(*started_, params_.call.ttl)) {
    result_ = AcquireReply(Granted{token_});
    return;
  }
  bool possible = confirmed < majority && confirmed + confirming_->open() >= majority;
  if (possible) return;
  const Millis pause = pause_after_tie();
  cancel_try(try_again({}, pause), now, waits() ? now : now + pause);
}

// A server that granted the lock refuses to confirm it, or is slow.
bool QuorumAcquire::needs_rest(TimePoint now) const {
  const size_t left_out = confirming_->left_out(), majority = quorum_.majority();
  const size_t confirmed = count_renewed(confirming_->replies());
  if (left_out == 0 || confirmed >= majority) return false;
  return now >= ask_rest_at_ || confirmed + confirming_->open() - left_out < majority;
}

// Its position in the queue is kept: another try comes after a wake, or when it is time to look
// again.
AcquireReply QuorumAcquire::try_again(const Summary& summary, Millis pause) const {
  if (!waits()) return RetryNow{};
  return Queued{params_.call.ticket,
                summary.position,
                std::min(pause, summary.look_again.value_or(pause)),
                summary.contender,
                {}};
}

void QuorumAcquire::on_not_granted(const Summary& totals, TimePoint now) {
  // A server does not accept a ticket of the future. From here on the position is the same at all
  // servers.
  if (totals.ticket) params_.call.ticket = std::min(params_.call.ticket, *totals.ticket);
  const size_t majority = quorum_.majority();
  if (totals.owner_ended) return cancel_try(AcquireReply(*totals.owner_ended), now, now);
  if (totals.done) return cancel_try(AcquireReply(*totals.done), now, now);
  if (totals.answered() < majority) return cancel_try(too_few_answered(), now, now);
  if (totals.failures > 0 && totals.granted + totals.queued < majority) {
    return cancel_try(AcquireReply(FailedTooOften{totals.failures}), now, now);
  }
  const bool contender_holds = totals.contender && totals.contender->servers >= majority;
  const bool in_line = totals.queued + totals.granted >= majority;
  if (waits() && in_line && contender_holds) {
    Queued place{params_.call.ticket, totals.position, totals.look_again, totals.contender,
                 totals.slice};
    return cancel_try(AcquireReply(std::move(place)), now, now);
  }
  const bool enough = contender_holds || params_.ties >= kMaxTies;
  if (waits() ? !in_line && totals.busy > 0 : enough) {
    return cancel_try(AcquireReply(Busy{totals.contender, totals.waiters}), now, now);
  }
  const Millis pause = pause_after_tie();
  cancel_try(try_again(totals, pause), now, waits() ? now : now + pause);
}

// The servers that may have something of this try: the silent ones, too, unless the owner keeps
// waiting and finds its own grant there in the next try.
std::vector<bool> QuorumAcquire::servers_to_cancel() const {
  std::vector<bool> to_cancel(members_.size(), true);
  if (!asking_ || holds<OwnerEnded>()) return to_cancel;
  for (size_t i = 0; i < to_cancel.size(); ++i) {
    const auto& reply = asking_->replies()[i];
    if (!reply || !*reply) {
      to_cancel[i] = !holds<Queued>();
    } else if (is_over()) {
      to_cancel[i] = !std::holds_alternative<AlreadyDone>(**reply) &&
                     !std::holds_alternative<FailedTooOften>(**reply);
    } else {
      to_cancel[i] = std::holds_alternative<Granted>(**reply) ||
                     (std::holds_alternative<Queued>(**reply) && holds<Busy>());
    }
  }
  return to_cancel;
}

bool QuorumAcquire::is_over() const {
  return holds<OwnerEnded>() || holds<AlreadyDone>() || holds<FailedTooOften>();
}

CancelCall QuorumAcquire::cancel_call() const {
  CancelCall call{params_.call.name, params_.call.owner};
  if (is_over()) return call;
  call.how = CancelHow::attempt_only;
  call.attempt = params_.call.attempt;
  if (waits() && !holds<Busy>()) call.ticket = params_.call.ticket;
  return call;
}

// One that stays in the queue need not wait until its grants are cancelled: it sends on the same
// connections.
void QuorumAcquire::cancel_try(Result<AcquireReply> then, TimePoint now, TimePoint pause_until) {
  result_ = std::move(then);
  auto make_request = [to_cancel = servers_to_cancel(), call = cancel_call()](
                          LockServer& store, size_t member, TimePoint) -> InFlight<CancelReply> {
    if (!to_cancel[member]) return nullptr;
    return where_reached<CancelReply>(store, [&](auto& one) { return one.cancel(call); });
  };
  confirming_.reset();  // its connections are wanted
  QuorumTry::cancel_try(std::move(make_request),
                        holds<Queued>() ? now : now + timing::kTryCancelTime, pause_until);
}

}  // namespace rlock::lock
