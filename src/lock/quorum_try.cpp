#include "lock/quorum_try.hpp"

#include <algorithm>
#include <map>

namespace rlock::lock {
namespace {

using util::Error;
using util::Result;

constexpr Millis kShortestLimit{50};
constexpr Millis kLongestLimit{2000};
constexpr Millis kLeastGrace{10};
// 5-15 ms, doubled each time.
constexpr Millis kSplitPause{5};
constexpr uint64_t kMostDoublings = 5;

const std::optional<Holder>& holder_in(const AcquireReply& reply) {
  static const std::optional<Holder> none;
  if (const auto* queued = std::get_if<Queued>(&reply)) return queued->holder;
  if (const auto* busy = std::get_if<Busy>(&reply)) return busy->holder;
  return none;
}

void add(Tally& tally, const Queued& queued) {
  ++tally.queued;
  tally.position = std::max(tally.position, queued.position);
  tally.ticket = std::max(tally.ticket.value_or(Ticket{}), queued.ticket);
  if (!queued.look_again) return;
  tally.look_again = std::min(tally.look_again.value_or(*queued.look_again), *queued.look_again);
}

void add(Tally& tally, const Gone& gone) {
  ++tally.refused;
  bool by_operator = gone.ending == Ending::removed || gone.ending == Ending::forced;
  if (by_operator && !tally.gone) tally.gone = gone;
}

void add(Tally& tally, const AcquireReply& reply) {
  if (const auto* granted = std::get_if<Granted>(&reply)) {
    ++tally.granted;
    tally.greatest = std::max(tally.greatest, granted->token);
  } else if (const auto* queued = std::get_if<Queued>(&reply)) {
    add(tally, *queued);
  } else if (const auto* busy = std::get_if<Busy>(&reply)) {
    ++tally.busy;
    tally.waiters = std::max(tally.waiters, busy->waiters);
  } else if (const auto* gone = std::get_if<Gone>(&reply)) {
    add(tally, *gone);
  } else {
    ++tally.refused;  // much had to be swept first
  }
}

// Since a majority has answered and its answers leave it open: how long a slow server still gets,
// as long again.
Millis straggler_grace(util::Nanos since_asked) {
  return std::max(kLeastGrace, std::chrono::duration_cast<Millis>(since_asked));
}

// Never fast enough to spin, never in step with a rival.
Millis split_pause(uint64_t splits, util::Random& random) {
  Millis least = kSplitPause * (1 << std::min(splits, kMostDoublings));
  return least + Millis(static_cast<Millis::rep>(random.next() % 100) * 2 * least.count() / 100);
}

}  // namespace

Millis server_limit(Millis ttl) {
  return std::clamp(ttl / 20, kShortestLimit, kLongestLimit);
}

Tally tally(const Ballots<AcquireReply>& ballots) {
  Tally tally;
  std::map<std::string, uint64_t> rivals;
  for (const auto& ballot : ballots) {
    if (!ballot || !*ballot) continue;
    add(tally, **ballot);
    const auto& holder = holder_in(**ballot);
    if (!holder) continue;
    const uint64_t servers = ++rivals[holder->owner];
    if (!tally.rival || servers > tally.rival->servers) {
      tally.rival = holder;
      tally.rival->servers = servers;
    }
  }
  return tally;
}

QuorumTry::QuorumTry(std::vector<Member>& members, const Electorate& electorate,
                     util::Random& random, Try one)
    : members_(members),
      electorate_(electorate),
      random_(random),
      try_(std::move(one)),
      limit_(server_limit(try_.call.ttl)) {
  asking_.emplace(
      members_, [this](LockStore& store, size_t, TimePoint) { return store.acquire(try_.call); },
      limit_);
}

void QuorumTry::wants(std::vector<pollfd>& out) const {
  if (giving_back_) return giving_back_->wants(out);
  if (asking_) asking_->wants(out);
}

TimePoint QuorumTry::due() const {
  if (!giving_back_) return asking_ ? std::min(asking_->due(), close_at_) : TimePoint::min();
  return giving_back_->open() == 0 ? pause_until_ : std::min(giving_back_->due(), close_at_);
}

bool QuorumTry::advance(TimePoint now) {
  if (!started_) started_ = now;
  if (asking_) hear(now);
  go_on(now);
  if (!giving_back_) return result_.has_value();
  giving_back_->advance(now);
  return now >= close_at_ || (giving_back_->open() == 0 && now >= pause_until_);
}

Result<AcquireReply> QuorumTry::take() {
  try_.splits = split_ ? try_.splits + 1 : 0;
  return *std::move(result_);
}

void QuorumTry::hear(TimePoint now) {
  asking_->advance(now);
  answered_ = asking_->answered();
  const Tally heard = tally(asking_->ballots());
  const size_t majority = electorate_.majority();
  if (heard.granted >= majority) return granted(heard, now);
  const size_t open = asking_->open();
  const bool enough = heard.answered() >= majority;
  if (enough) close_at_ = std::min(close_at_, now + straggler_grace(now - *started_));
  const bool out_of_reach = heard.granted + open < majority;
  if ((enough && out_of_reach) || open == 0 || now >= close_at_) not_granted(heard, now);
}

Error QuorumTry::too_few_answered() const {
  Error error = too_few(electorate_, errors_of(asking_->ballots()));
  error.text = "cannot acquire \"" + try_.call.name.text() + "\": " + error.text;
  return error;
}

Millis QuorumTry::pause_after_split() {
  split_ = true;
  return split_pause(try_.splits, random_);
}

void QuorumTry::give_back(Ask<CancelReply> ask, TimePoint close_at, TimePoint pause_until) {
  pause_until_ = pause_until;
  close_at_ = std::max(pause_until, close_at);
  asking_.reset();  // its connections are wanted
  giving_back_.emplace(members_, std::move(ask), limit_, Turn::instead);
}

}  // namespace rlock::lock
