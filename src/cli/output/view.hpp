#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lock/inspector.hpp"
#include "redis/open.hpp"
#include "util/result.hpp"

namespace rlock::cli {

enum class LockState { free, held, cooldown, revoked };

// revoked where any holder is; cooldown where nothing but cool-downs is left.
LockState state_of(const lock::Snapshot& snapshot);
std::string_view to_string(LockState state);

// The least limit of those who hold it: what decides about the next one. None for a free lock.
std::optional<lock::Limit> limit_of(const lock::Snapshot& snapshot);
std::string_view to_string(lock::Mode mode);

// One lock as `status` shows it: looked at, or why that failed.
struct LockView {
  std::string name;
  Result<lock::Snapshot> snapshot;
  redis::Format format = redis::Format::native;
};

// Whether anything is remembered of it: a lock that was used within 30 days, or is held.
bool is_known(const LockView& lock);

}  // namespace rlock::cli
