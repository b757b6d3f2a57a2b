#include "cli/output/view.hpp"

#include <algorithm>

#include "cli/output/record.hpp"
#include "lock/timing.hpp"

namespace rlock::cli {

using lock::HolderState;

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
  switch (state) {
    case LockState::free:
      return "free";
    case LockState::closed:
      return "closed";
    case LockState::held:
      return "held";
    case LockState::overdue:
      return "overdue";
    case LockState::cooldown:
      return "cooldown";
    case LockState::revoked:
      return "revoked";
  }
  return "held";
}

std::optional<lock::Limit> limit_of(const lock::Snapshot& snapshot) {
  auto least = std::min_element(snapshot.holders.begin(), snapshot.holders.end(),
                                [](const lock::Holder& a, const lock::Holder& b) {
                                  return a.limit.value() < b.limit.value();
                                });
  return least == snapshot.holders.end() ? std::nullopt : std::optional(least->limit);
}

std::string_view to_string(lock::Mode mode) {
  switch (mode) {
    case lock::Mode::exclusive:
      return "exclusive";
    case lock::Mode::slots:
      return "slots";
    case lock::Mode::shared:
      return "shared";
  }
  return "exclusive";
}

std::string_view to_string(redis::Format format) {
  switch (format) {
    case redis::Format::native:
      return "native";
    case redis::Format::plain:
      return "plain";
    case redis::Format::redisson:
      return "redisson";
  }
  return "native";
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
    const bool cooling = holder.state == HolderState::cooldown;
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
