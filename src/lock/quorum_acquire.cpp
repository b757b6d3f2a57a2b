#include "lock/quorum_acquire.hpp"

#include <algorithm>
#include <map>

#include "lock/lease.hpp"

namespace rlock::lock {
namespace {

using util::Error;
using util::ErrorKind;
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

}  // namespace

Millis server_limit(Millis ttl) {
  return std::clamp(ttl / 20, kShortestLimit, kLongestLimit);
}

Millis straggler_grace(util::Nanos since_asked) {
  return std::max(kLeastGrace, std::chrono::duration_cast<Millis>(since_asked));
}

Millis split_pause(uint64_t splits, util::Random& random) {
  Millis least = kSplitPause * (1 << std::min(splits, kMostDoublings));
  return least + Millis(static_cast<Millis::rep>(random.next() % 100) * 2 * least.count() / 100);
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

QuorumAcquire::QuorumAcquire(std::vector<Member>& members, const Electorate& electorate,
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

void QuorumAcquire::wants(std::vector<pollfd>& out) const {
  if (giving_back_) return giving_back_->wants(out);
  if (confirming_) return confirming_->wants(out);
  if (asking_) asking_->wants(out);
}

TimePoint QuorumAcquire::due() const {
  if (giving_back_) {
    return giving_back_->open() == 0 ? pause_until_ : std::min(giving_back_->due(), close_at_);
  }
  if (result_) return TimePoint::min();
  if (confirming_) return confirming_->due();
  return std::min(asking_->due(), close_at_);
}

bool QuorumAcquire::advance(TimePoint now) {
  if (!started_) started_ = now;
  if (asking_) hear(now);
  if (confirming_) hear_confirmations(now);
  if (!giving_back_) return result_.has_value();
  giving_back_->advance(now);
  return now >= close_at_ || (giving_back_->open() == 0 && now >= pause_until_);
}

Result<AcquireReply> QuorumAcquire::take() {
  try_.splits = split_ ? try_.splits + 1 : 0;
  return *std::move(result_);
}

void QuorumAcquire::hear(TimePoint now) {
  asking_->advance(now);
  answered_ = asking_->answered();
  const Tally heard = tally(asking_->ballots());
  const size_t majority = electorate_.majority();
  if (heard.granted >= majority) {
    token_ = heard.greatest;
    return confirm();
  }
  const size_t open = asking_->open();
  const bool enough = heard.answered() >= majority;
  if (enough && close_at_ == TimePoint::max()) {
    close_at_ = now + straggler_grace(now - *started_);
  }
  const bool out_of_reach = heard.granted + open < majority;
  if ((enough && out_of_reach) || open == 0 || now >= close_at_) not_granted(heard, now);
}

void QuorumAcquire::confirm() {
  const AcquireCall& call = try_.call;
  RenewCall back{call.name, call.owner};
  back.token = token_;
  back.ttl = call.ttl;
  back.min_hold = call.min_hold;
  back.attended = call.attended;
  back.record = call.record;
  back.attempt = call.attempt;
  asking_.reset();
  confirming_.emplace(
      members_,
      [back = std::move(back)](LockStore& store, size_t, TimePoint) { return store.renew(back); },
      limit_);
}

void QuorumAcquire::hear_confirmations(TimePoint now) {
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
  const size_t majority = electorate_.majority();
  if (heard.gone) return give_back(AcquireReply(*heard.gone), now, now);
  if (heard.answered() < majority) {
    Error error = too_few(electorate_, errors_of(asking_->ballots()));
    error.text = "cannot acquire \"" + try_.call.name.text() + "\": " + error.text;
    return give_back(std::move(error), now, now);
  }
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

Millis QuorumAcquire::pause_after_split() {
  split_ = true;
  return split_pause(try_.splits, random_);
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
  pause_until_ = pause_until;
  close_at_ = std::max(pause_until, holds<Queued>() ? now : now + kGiveBack);
  auto ask = [owes = debtors(), call = withdrawal()](LockStore& store, size_t member,
                                                     TimePoint) -> InFlight<CancelReply> {
    return owes[member] ? store.cancel(call) : nullptr;
  };
  asking_.reset();  // its connections are wanted
  confirming_.reset();
  giving_back_.emplace(members_, std::move(ask), limit_, Turn::instead);
}

}  // namespace rlock::lock
