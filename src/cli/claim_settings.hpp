#pragma once

#include <optional>

#include "cli/parse.hpp"
#include "lock/store.hpp"

namespace rlock::cli {

// How long to wait for the lock, and what a busy one exits with: for `run` and `acquire` alike.
struct WaitSettings {
  std::optional<util::Millis> wait{};  // none: for ever; 0: not at all
  int conflict_code = 75;
};

// ErrorKind::usage says what is wrong. Sets whether the claim queues, too.
util::Result<WaitSettings> wait_settings(lock::AcquireCall& claim, const Choices& choices);

// --ttl where it was given; at least 1s.
util::Result<std::optional<util::Millis>> ttl_choice(const Choices& choices);

}  // namespace rlock::cli
