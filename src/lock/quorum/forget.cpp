#include "lock/quorum/forget.hpp"

#include <algorithm>

#include "lock/timing.hpp"

namespace rlock::lock {
namespace {

// The last that any server granted, or what was before it while that one runs.
Token last_ended(const Replies<Snapshot>& replies, const Snapshot& merged) {
  for (const Holder& holder : merged.holders) {
    if (holder.state != HolderState::cooldown) return {holder.token.value - 1};
  }
  Token last{};
  for (const auto& reply : replies) {
    if (reply && *reply) last = std::max(last, (*reply)->last_grant);
  }
  return last;
}

}  // namespace

QuorumForget::QuorumForget(std::vector<Member>& members, const Quorum& quorum, ForgetCall call)
    : members_(members), quorum_(quorum), call_(std::move(call)) {
  InspectCall look{call_.name};
  look.waiters_page = 0;
  looking_.emplace(
      members_, [look](LockInspector& store, size_t, TimePoint) { return store.inspect(look); },
      timing::kQuorumInspectLimit);
}

void QuorumForget::wants(std::vector<pollfd>& out) const {
  if (looking_) return looking_->wants(out);
  forgetting_->wants(out);
}

TimePoint QuorumForget::due() const {
  return std::min(close_at_, looking_ ? looking_->due() : forgetting_->due());
}

bool QuorumForget::advance(TimePoint now) {
  if (result_) return true;
  if (looking_) advance_look(now);
  if (!forgetting_) return result_.has_value();
  forgetting_->advance(now);
  if (!has_enough(*forgetting_, quorum_, now, close_at_)) return false;
  result_ = merge_replies(forgetting_->replies(), quorum_, Collecting::closed);
  return true;
}

void QuorumForget::advance_look(TimePoint now) {
  looking_->advance(now);
  if (!has_enough(*looking_, quorum_, now, close_at_)) return;
  auto seen = *merge_replies(looking_->replies(), quorum_, Collecting::closed);
  if (!seen) {
    result_ = std::move(seen).error();
    return;
  }
  call_.through = last_ended(looking_->replies(), *seen);
  looking_.reset();
  close_at_ = TimePoint::max();
  forgetting_.emplace(
      members_,
      [call = call_](LockInspector& store, size_t, TimePoint) { return store.forget(call); },
      timing::kQuorumInspectLimit);
}

Answered QuorumForget::answered() const {
  return looking_ ? looking_->answered() : Answered::yes;
}

}  // namespace rlock::lock
