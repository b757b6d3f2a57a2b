#include "cli/output/view.hpp"

#include <algorithm>

#include "cli/output/record.hpp"
#include "lock/timing.hpp"
#include "util/text.hpp"

namespace rlock::cli {

using lock::HolderState;

bool Selection::lists(const lock::LockName& name) const {
  if (std::find(names.begin(), names.end(), name) != names.end()) return false;
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
           return util::matches(pattern, name.text());
         });
}

std::optional<Millis> overdue(const lock::Holder& holder) {
  if (holder.state != HolderState::held || holder.responsive == lock::Responsive::no) return {};
  if (holder.ttl <= Millis(0) || holder.left < Millis(0)) return {};
  const Millis interval = timing::renew_interval(holder.ttl);
  const Millis late = holder.ttl - holder.left - interval;
  if (late < interval / 2 || !decode_record(holder.record).renews) return {};
  return late;
}

bool is_closed(const lock::Snapshot& snapshot) {
  return snapshot.closure &&
         2 * (snapshot.closure->servers + snapshot.silent.size()) > snapshot.servers;
}

LockState state_of(const lock::Snapshot& snapshot) {
  auto in = [](HolderState state) {
    return [state](const lock::Holder& holder) { return holder.state == state; };
  };
  const auto& holders = snapshot.holders;
  if (holders.empty()) return is_closed(snapshot) ? LockState::closed : LockState::free;
  if (std::any_of(holders.begin(), holders.end(), in(HolderState::revoked))) {
    return LockState::revoked;
  }
  if (std::any_of(holders.begin(), holders.end(), overdue)) return LockState::overdue;
  bool cooling = std::all_of(holders.begin(), holders.end(), in(HolderState::cooldown));
  return cooling ? LockState::cooldown : LockState::held;
}

std::string_view to_string(LockState state) {
  return util::to_string<LockState::revoked>(
      state, {"free", "closed", "held", "overdue", "cooldown", "revoked"});
}

std::optional<lock::Limit> limit_of(const lock::Snapshot& snapshot) {
  auto least = std::min_element(snapshot.holders.begin(), snapshot.holders.end(),
                                [](const lock::Holder& a, const lock::Holder& b) {
                                  return a.limit.value() < b.limit.value();
                                });
  return least == snapshot.holders.end() ? std::nullopt : std::optional(least->limit);
}

std::string_view to_string(lock::Mode mode) {
  return util::to_string<lock::Mode::shared>(mode, {"exclusive", "slots", "shared"});
}

std::string_view to_string(redis::Format format) {
  return util::to_string<redis::Format::redisson>(format, {"native", "plain", "redisson"});
}

std::optional<Millis> last_duration(const lock::Snapshot& snapshot) {
  if (last_run_failed(snapshot)) return snapshot.last_failure->took;
  if (snapshot.last_success) return snapshot.last_success->took;
  return std::nullopt;
}

bool last_run_failed(const lock::Snapshot& snapshot) {
  if (!snapshot.last_failure) return false;
  return !snapshot.last_success || snapshot.last_failure->at > snapshot.last_success->at;
}

Millis longest_hold(const lock::Snapshot& snapshot) {
  Millis longest{0};
  for (const lock::Holder& holder : snapshot.holders) {
    const bool runs = holder.state != lock::HolderState::cooldown;
    if (runs) longest = std::max(longest, holder.held);
  }
  return longest;
}

Millis longest_wait(const lock::Snapshot& snapshot) {
  Millis longest{0};
  for (const lock::Waiter& waiter : snapshot.waiters) longest = std::max(longest, waiter.waiting);
  return longest;
}

std::vector<Millis> expected_starts(const std::vector<lock::Holder>& holders,
                                    const std::vector<lock::Waiter>& waiters, Millis usual) {
  constexpr size_t kMostWaiters = 128, kMostHolders = 1024;
  constexpr Millis kLongest{3'650LL * 24 * 60 * 60 * 1000};  // hostile numbers must not overflow
  struct Run {
    Millis end;
    uint64_t limit;
  };
  if (holders.size() > kMostHolders) return {};
  usual = std::min(usual, kLongest);
  std::vector<Run> runs;
  for (const lock::Holder& holder : holders) {
    const bool cooling =
        holder.state == HolderState::cooldown || holder.state == HolderState::closed;
    const Millis held = std::clamp(holder.held, Millis(0), kLongest);
    const Millis left = cooling ? std::min(holder.left, kLongest) : usual - held;
    runs.push_back({std::max(Millis(0), left), holder.limit.value()});
  }
  std::vector<Millis> starts;
  Millis now{0};
  for (size_t i = 0; i < std::min(waiters.size(), kMostWaiters); ++i) {
    const uint64_t limit = waiters[i].limit.value();
    auto is_full = [&] {
      const uint64_t together = runs.size() + 1;
      return limit < together || std::any_of(runs.begin(), runs.end(),
                                             [&](const Run& run) { return run.limit < together; });
    };
    while (!runs.empty() && is_full()) {
      auto first = std::min_element(runs.begin(), runs.end(),
                                    [](const Run& a, const Run& b) { return a.end < b.end; });
      now = std::max(now, first->end);
      runs.erase(first);
    }
    starts.push_back(now);
    runs.push_back({now + usual, limit});
  }
  return starts;
}

bool is_known(const LockView& lock) {
  if (!lock.snapshot || lock.format != redis::Format::native) return true;
  return lock.snapshot->known || !lock.snapshot->holders.empty();
}

bool is_idle(const LockView& lock) {
  if (!lock.snapshot) return false;
  const lock::Snapshot& snapshot = *lock.snapshot;
  return snapshot.holders.empty() && snapshot.partial.empty() && snapshot.live_waiters == 0 &&
         !snapshot.closure;
}

}  // namespace rlock::cli
