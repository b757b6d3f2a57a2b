#include "lock/quorum/try.hpp"

#include <algorithm>
#include <map>

#include "lock/lease.hpp"
#include "lock/timing.hpp"

namespace rlock::lock {
namespace {

constexpr uint64_t kMostDoublings = 5;

const std::optional<Obstacle>& obstacle_in(const AcquireReply& reply) {
  static const std::optional<Obstacle> none;
  if (const auto* queued = std::get_if<Queued>(&reply)) return queued->obstacle;
  if (const auto* busy = refusal_in<Busy>(reply)) return busy->obstacle;
  return none;
}

void count_refusal(Summary& summary, const Busy& busy) {
  ++summary.busy;
  summary.forgotten = std::max(summary.forgotten, busy.forgotten);
  summary.waiters = std::max(summary.waiters, busy.waiters);
}

void count_refusal(Summary& summary, const OwnerEnded& ended) {
  ++summary.refused;
  bool by_operator = ended.ending == OwnerEnd::removed || ended.ending == OwnerEnd::forced;
  if (by_operator && !summary.owner_ended) summary.owner_ended = ended;
}

void count_refusal(Summary& summary, const AlreadyDone& done) {
  ++summary.refused;
  if (!summary.done || done.token > summary.done->token) summary.done = done;
}

void count_refusal(Summary& summary, const FailedTooOften& failed) {
  ++summary.refused;
  summary.failures.times = std::max(summary.failures.times, failed.times);
  summary.failures.last = std::max(summary.failures.last, failed.last);
}

void count_refusal(Summary& summary, const Superseded&) {
  ++summary.refused;
}

void count(Summary& summary, const Granted& granted) {
  ++summary.granted;
  summary.forgotten = std::max(summary.forgotten, granted.forgotten);
  summary.slice = timing::kWaitSlice;  // it stays in the queue after the grant is cancelled
  summary.greatest = std::max(summary.greatest, granted.token);
}

void count(Summary& summary, const Queued& queued) {
  ++summary.queued;
  summary.forgotten = std::max(summary.forgotten, queued.forgotten);
  summary.position = std::max(summary.position, queued.position);
  summary.ticket = std::max(summary.ticket.value_or(Ticket{}), queued.ticket);
  summary.slice =
      std::min(summary.slice.value_or(Millis::max()), queued.slice.value_or(timing::kWaitSlice));
  if (!summary.needs) summary.needs = queued.needs;
  if (!queued.look_again) return;
  summary.look_again =
      std::min(summary.look_again.value_or(*queued.look_again), *queued.look_again);
}

void count(Summary& summary, const Refused& refused) {
  std::visit([&](const auto& why) { count_refusal(summary, why); }, refused);
}

void count(Summary& summary, const RetryNow&) {
  ++summary.refused;  // the server had to sweep first
}

}  // namespace

Summary summarize(const Replies<AcquireReply>& replies) {
  Summary summary;
  std::map<std::string, uint64_t> contenders;
  for (const AcquireReply* reply : answers(replies)) {
    std::visit([&](const auto& one) { count(summary, one); }, *reply);
    const auto& obstacle = obstacle_in(*reply);
    if (!obstacle) continue;
    const uint64_t servers = ++contenders[id_of(*obstacle)];
    if (servers <= summary.contender_servers) continue;
    summary.contender = obstacle;
    summary.contender_servers = servers;
  }
  // A server that was down when the mark was forgotten still knows it.
  if (summary.forgotten.value == 0) return summary;
  if (summary.done && summary.done->token <= summary.forgotten) summary.done.reset();
  if (summary.failures.last <= summary.forgotten) summary.failures = {};
  return summary;
}

QuorumTry::QuorumTry(std::vector<Member>& members, const Quorum& quorum, util::Random& random,
                     Params one)
    : members_(members),
      quorum_(quorum),
      random_(random),
      params_(std::move(one)),
      limit_(timing::server_limit(params_.call.ttl)) {
  asking_.emplace(
      members_,
      [this](LockStore& store, size_t, TimePoint now) { return store.acquire(call_at(now)); },
      limit_);
}

// A server that is busy with an earlier request gets this one later.
AcquireCall QuorumTry::call_at(TimePoint now) const {
  AcquireCall call = params_.call;
  if (call.once) call.asked += std::chrono::duration_cast<Millis>(now - *started_);
  return call;
}

void QuorumTry::wants(std::vector<pollfd>& out) const {
  if (asking_) asking_->wants(out);
  if (confirming_) confirming_->wants(out);
  if (cancelling_) cancelling_->wants(out);
}

TimePoint QuorumTry::due() const {
  switch (step_) {
    case Step::asking:
      return std::min(asking_->due(), stragglers_until_);
    case Step::confirming: {
      const TimePoint due =
          std::min(confirming_->due(), asking_ ? asking_->due() : TimePoint::max());
      return confirming_->left_out() > 0 ? std::min(due, ask_rest_at_) : due;
    }
    case Step::cancelling:
      if (cancelling_->open() == 0) return pause_until_;
      return std::min(cancelling_->due(), cancel_until_);
    case Step::over:
      break;
  }
  return TimePoint::min();
}

bool QuorumTry::advance(TimePoint now) {
  if (!started_) started_ = now;
  if (step_ == Step::asking) ask(now);
  if (step_ == Step::confirming) confirm(now);
  if (step_ == Step::cancelling) {
    cancelling_->advance(now);
    const bool cancelled = cancelling_->open() == 0 && now >= pause_until_;
    if (cancelled || now >= cancel_until_) step_ = Step::over;
  }
  return step_ == Step::over;
}

Result<AcquireReply> QuorumTry::take() {
  params_.ties = tied_ ? params_.ties + 1 : 0;
  return *std::move(result_);
}

void QuorumTry::ask(TimePoint now) {
  asking_->advance(now);
  answered_ = asking_->answered();
  const Summary totals = summarize(asking_->replies());
  if (params_.forgotten != nullptr) {
    *params_.forgotten = std::max(*params_.forgotten, totals.forgotten);
  }
  const size_t majority = quorum_.majority();
  if (totals.granted >= majority && !totals.done) return on_granted(totals, now);
  const size_t open = asking_->open();
  const bool enough = totals.answered() >= majority;
  if (enough) {
    const auto since_asked = std::chrono::duration_cast<Millis>(now - *started_);
    stragglers_until_ =
        std::min(stragglers_until_, now + std::max(timing::kLeastStragglerGrace, since_asked));
  }
  // One server may report work as done that another knows to be forgotten.
  const bool out_of_reach = !totals.done && totals.granted + open < majority;
  if ((enough && out_of_reach) || open == 0 || now >= stragglers_until_) {
    on_not_granted(totals, now);
  }
}

Error QuorumTry::too_few_answered() const {
  Error error = too_few_servers(quorum_, errors_of(asking_->replies()));
  error.text = util::format("cannot acquire \"{}\": {}", params_.call.name.text(), error.text);
  return error;
}

// Random: never fast enough to spin, never synchronised with a contender.
Millis QuorumTry::pause_after_tie() {
  tied_ = true;
  const Millis least = timing::kTiePause * (1 << std::min(params_.ties, kMostDoublings));
  return least + Millis(static_cast<Millis::rep>(random_.next() % 100) * 2 * least.count() / 100);
}

void QuorumTry::confirm_by(const std::vector<bool>& first, RequestMaker<RenewReply> make_request,
                           TimePoint rest_at) {
  step_ = Step::confirming;
  ask_rest_at_ = rest_at;
  confirming_ = std::make_unique<Broadcast<RenewReply>>(members_, std::move(make_request), limit_);
  confirming_->ask_only(first);
}

void QuorumTry::begin_cancelling(RequestMaker<CancelReply> make_request, TimePoint until,
                                 TimePoint pause_until) {
  step_ = Step::cancelling;
  pause_until_ = pause_until;
  cancel_until_ = std::max(pause_until, until);
  asking_.reset();  // both need the connections
  confirming_.reset();
  cancelling_.emplace(members_, std::move(make_request), limit_, OnPending::abandon);
}

void QuorumTry::conclude(AcquireReply reply) {
  step_ = Step::over;
  result_ = std::move(reply);
  asking_.reset();
  if (confirming_ && params_.on_held) params_.on_held(std::move(confirming_));
}

void QuorumAcquire::on_granted(const Summary& totals, TimePoint now) {
  token_ = totals.greatest;
  const AcquireCall& call = params_.call;
  RenewCall back{call, Entry::outer(),
                 Restore{token_, 0, {}, timing::kLongestClockGap, call.attempt}};
  const std::vector<bool> granted = majority_that_granted();
  if (!call.once)
    asking_.reset();  // otherwise another server may still report that the work is done
  confirm_by(
      granted,
      [back = std::move(back)](LockStore& store, size_t, TimePoint) { return store.renew(back); },
      now + std::max<Nanos>(timing::kLeastConfirmTime, now - *started_));
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

void QuorumAcquire::confirm(TimePoint now) {
  if (asking_) {
    asking_->advance(now);
    if (auto done = summarize(asking_->replies()).done) {
      return cancel_try(AcquireReply(*std::move(done)), now);
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
    return conclude(Granted{token_});
  }
  bool possible = confirmed < majority && confirmed + confirming_->open() >= majority;
  if (!possible) split_vote({}, now);
}

// Whether a server that granted the lock refuses to confirm it, or is slow.
bool QuorumAcquire::needs_rest(TimePoint now) const {
  const size_t left_out = confirming_->left_out(), majority = quorum_.majority();
  const size_t confirmed = count_renewed(confirming_->replies());
  if (left_out == 0 || confirmed >= majority) return false;
  return now >= ask_rest_at_ || confirmed + confirming_->open() - left_out < majority;
}

void QuorumAcquire::on_not_granted(const Summary& totals, TimePoint now) {
  // A server does not accept a ticket of the future. From here on the position is the same at all
  // servers.
  if (totals.ticket) params_.call.ticket = std::min(params_.call.ticket, *totals.ticket);
  const size_t majority = quorum_.majority();
  if (totals.owner_ended) return cancel_try(AcquireReply(*totals.owner_ended), now);
  if (totals.done) return cancel_try(AcquireReply(*totals.done), now);
  if (totals.answered() < majority) return cancel_try(too_few_answered(), now);
  if (totals.failures.times > 0 && totals.granted + totals.queued < majority) {
    return cancel_try(AcquireReply(totals.failures), now);
  }
  const bool contender_holds = totals.contender_servers >= majority;
  const bool in_line = totals.queued + totals.granted >= majority;
  if (waits() && in_line && contender_holds) {
    Queued place{params_.call.ticket, totals.position, totals.look_again, totals.contender,
                 totals.slice};
    place.needs = totals.needs;
    return cancel_try(AcquireReply(std::move(place)), now);
  }
  const bool enough = contender_holds || params_.ties >= kMaxTies;
  if (waits() ? !in_line && totals.busy > 0 : enough) {
    return cancel_try(AcquireReply(Busy{totals.contender, totals.waiters}), now);
  }
  split_vote(totals, now);
}

// Keeps its position in the queue: another try follows after a wake, or when it is time to ask
// again.
void QuorumAcquire::split_vote(const Summary& totals, TimePoint now) {
  const Millis pause = pause_after_tie();
  if (!waits()) return cancel_try(AcquireReply(RetryNow{}), now, pause);
  const Millis look_again = std::min(pause, totals.look_again.value_or(pause));
  Queued place{params_.call.ticket, totals.position, look_again, totals.contender, {}};
  place.needs = totals.needs;
  cancel_try(AcquireReply(std::move(place)), now);
}

// The servers that may store something of this try: including the silent ones, unless the owner
// keeps waiting and finds its own grant there in the next try.
std::vector<bool> QuorumAcquire::servers_to_cancel() const {
  std::vector<bool> to_cancel(members_.size(), true);
  if (!asking_ || refuses<OwnerEnded>()) return to_cancel;
  for (size_t i = 0; i < to_cancel.size(); ++i) {
    const auto& reply = asking_->replies()[i];
    if (!reply || !*reply) {
      to_cancel[i] = !waits_on();
    } else if (is_over()) {
      to_cancel[i] = !refusal_in<AlreadyDone>(**reply) && !refusal_in<FailedTooOften>(**reply);
    } else {
      to_cancel[i] = std::holds_alternative<Granted>(**reply) ||
                     (std::holds_alternative<Queued>(**reply) && refuses<Busy>());
    }
  }
  return to_cancel;
}

bool QuorumAcquire::is_over() const {
  return refuses<OwnerEnded>() || refuses<AlreadyDone>() || refuses<FailedTooOften>();
}

CancelCall QuorumAcquire::cancel_call() const {
  CancelCall call{params_.call.name, params_.call.owner};
  if (is_over()) return call;
  call.how = CancelHow::attempt_only;
  call.attempt = params_.call.attempt;
  if (waits() && !refuses<Busy>()) call.ticket = params_.call.ticket;
  return call;
}

// A waiter that stays in the queue need not wait until its grants are cancelled, because it sends
// on the same connections.
void QuorumAcquire::cancel_try(Result<AcquireReply> then, TimePoint now, Millis pause) {
  result_ = std::move(then);
  auto make_request = [to_cancel = servers_to_cancel(), call = cancel_call()](
                          LockServer& store, size_t member, TimePoint) -> InFlight<CancelReply> {
    if (!to_cancel[member]) return nullptr;
    return where_reached<CancelReply>(store, [&](auto& one) { return one.cancel(call); });
  };
  begin_cancelling(std::move(make_request), waits_on() ? now : now + timing::kTryCancelTime,
                   now + pause);
}

}  // namespace rlock::lock
