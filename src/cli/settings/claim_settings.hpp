#pragma once

#include <optional>

#include "cli/options/parse.hpp"
#include "lock/store.hpp"

namespace rlock::cli {

// How long to wait for the lock, and what a busy one exits with: for `run` and `acquire` alike.
struct WaitSettings {
  std::optional<Millis> wait{};  // none: for ever; 0: not at all
  int conflict_code = 75;
};

// ErrorKind::usage says what is wrong. Sets whether the claim queues, too.
Result<WaitSettings> wait_settings(lock::AcquireCall& claim, const Choices& choices);

// --ttl where it was given; at least 1s.
Result<std::optional<Millis>> ttl_choice(const Choices& choices);

}  // namespace rlock::cli
