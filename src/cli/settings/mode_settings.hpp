#pragma once

#include "cli/options/parse.hpp"
#include "lock/store.hpp"

namespace rlock::cli {

// How the lock is held and queued for: --slots, --shared, --min-hold, --max-queue, for `run` and
// `acquire` alike. ErrorKind::usage says what is wrong.
Status mode_settings(lock::AcquireCall& claim, const Choices& choices);

}  // namespace rlock::cli
