#include "lock/quorum/attempt.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include "lock/timing.hpp"

namespace rlock::lock {
namespace {

constexpr uint64_t kMostDoublings = 5;

const std::optional<Holder>& holder_in(const AcquireReply& reply) {
  static const std::optional<Holder> none;
  if (const auto* queued = std::get_if<Queued>(&reply)) return queued->holder;
  if (const auto* busy = std::get_if<Busy>(&reply)) return busy->holder;
  return none;
}

void add(Summary& summary, const Queued& queued) {
  ++summary.queued;
  summary.forgotten = std::max(summary.forgotten, queued.forgotten);
  summary.position = std::max(summary.position, queued.position);
  summary.ticket = std::max(summary.ticket.value_or(Ticket{}), queued.ticket);
  summary.slice =
      std::min(summary.slice.value_or(Millis::max()), queued.slice.value_or(timing::kWaitSlice));
  if (!queued.look_again) return;
  summary.look_again =
      std::min(summary.look_again.value_or(*queued.look_again), *queued.look_again);
}

void add(Summary& summary, const OwnerEnded& ended) {
  ++summary.refused;
  bool by_operator = ended.ending == OwnerEnd::removed || ended.ending == OwnerEnd::forced;
  if (by_operator && !summary.owner_ended) summary.owner_ended = ended;
}

void add(Summary& summary, const AlreadyDone& done) {
  ++summary.refused;
  if (!summary.done || done.token > summary.done->token) summary.done = done;
}

void add(Summary& summary, const AcquireReply& reply) {
  if (const auto* granted = std::get_if<Granted>(&reply)) {
    ++summary.granted;
    summary.forgotten = std::max(summary.forgotten, granted->forgotten);
    summary.slice = timing::kWaitSlice;  // where it stays in the queue once the grant is cancelled
    summary.greatest = std::max(summary.greatest, granted->token);
  } else if (const auto* queued = std::get_if<Queued>(&reply)) {
    add(summary, *queued);
  } else if (const auto* busy = std::get_if<Busy>(&reply)) {
    ++summary.busy;
    summary.forgotten = std::max(summary.forgotten, busy->forgotten);
    summary.waiters = std::max(summary.waiters, busy->waiters);
  } else if (const auto* ended = std::get_if<OwnerEnded>(&reply)) {
    add(summary, *ended);
  } else if (const auto* done = std::get_if<AlreadyDone>(&reply)) {
    add(summary, *done);
  } else if (const auto* failed = std::get_if<FailedTooOften>(&reply)) {
    ++summary.refused;
    summary.failures = std::max(summary.failures, failed->times);
  } else {
    ++summary.refused;  // much had to be swept first
  }
}

// A majority has answered without a decision: how much longer slow servers are waited for.
Millis straggler_grace(Nanos since_asked) {
  return std::max(timing::kLeastStragglerGrace, std::chrono::duration_cast<Millis>(since_asked));
}

// Never fast enough to spin, never in step with a contender.
Millis tie_pause(uint64_t ties, util::Random& random) {
  Millis least = timing::kTiePause * (1 << std::min(ties, kMostDoublings));
  return least + Millis(static_cast<Millis::rep>(random.next() % 100) * 2 * least.count() / 100);
}

}  // namespace

Summary summarize(const Replies<AcquireReply>& replies) {
  Summary summary;
  std::map<std::string, uint64_t> contenders;
  for (const AcquireReply* reply : answers(replies)) {
    add(summary, *reply);
    const auto& holder = holder_in(*reply);
    if (!holder) continue;
    const uint64_t servers = ++contenders[holder->owner];
    if (!summary.contender || servers > summary.contender->servers) {
      summary.contender = holder;
      summary.contender->servers = servers;
    }
  }
  // A server that was down when it was forgotten still has the mark.
  const bool is_forgotten =
      summary.forgotten.value > 0 && summary.done && summary.done->token <= summary.forgotten;
  if (is_forgotten) summary.done.reset();
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

// A server that is busy with an earlier request is sent this one later.
AcquireCall QuorumTry::call_at(TimePoint now) const {
  AcquireCall call = params_.call;
  if (call.once) call.asked += std::chrono::duration_cast<Millis>(now - *started_);
  return call;
}

void QuorumTry::wants(std::vector<pollfd>& out) const {
  if (cancelling_) return cancelling_->wants(out);
  if (asking_) asking_->wants(out);
}

TimePoint QuorumTry::due() const {
  if (!cancelling_) return asking_ ? std::min(asking_->due(), close_at_) : TimePoint::min();
  return cancelling_->open() == 0 ? pause_until_ : std::min(cancelling_->due(), close_at_);
}

bool QuorumTry::advance(TimePoint now) {
  if (!started_) started_ = now;
  if (asking_ && !granted_) collect_replies(now);
  advance_try(now);
  if (!cancelling_) return result_.has_value();
  cancelling_->advance(now);
  return now >= close_at_ || (cancelling_->open() == 0 && now >= pause_until_);
}

Result<AcquireReply> QuorumTry::take() {
  params_.ties = tied_ ? params_.ties + 1 : 0;
  return *std::move(result_);
}

void QuorumTry::collect_replies(TimePoint now) {
  asking_->advance(now);
  answered_ = asking_->answered();
  const Summary totals = summarize(asking_->replies());
  if (params_.forgotten != nullptr) {
    *params_.forgotten = std::max(*params_.forgotten, totals.forgotten);
  }
  const size_t majority = quorum_.majority();
  if (totals.granted >= majority && !totals.done) {
    granted_ = true;
    return on_granted(totals, now);
  }
  const size_t open = asking_->open();
  const bool enough = totals.answered() >= majority;
  if (enough) close_at_ = std::min(close_at_, now + straggler_grace(now - *started_));
  // Of what one server knows to be done another may know that it was forgotten.
  const bool out_of_reach = !totals.done && totals.granted + open < majority;
  if ((enough && out_of_reach) || open == 0 || now >= close_at_) on_not_granted(totals, now);
}

Error QuorumTry::too_few_answered() const {
  Error error = too_few_servers(quorum_, errors_of(asking_->replies()));
  error.text = "cannot acquire \"" + params_.call.name.text() + "\": " + error.text;
  return error;
}

Millis QuorumTry::pause_after_tie() {
  tied_ = true;
  return tie_pause(params_.ties, random_);
}

void QuorumTry::cancel_try(RequestMaker<CancelReply> make_request, TimePoint close_at,
                           TimePoint pause_until) {
  pause_until_ = pause_until;
  close_at_ = std::max(pause_until, close_at);
  asking_.reset();  // its connections are wanted
  cancelling_.emplace(members_, std::move(make_request), limit_, OnPending::abandon);
}

}  // namespace rlock::lock
