#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/options/parse.hpp"
#include "cli/output/record.hpp"
#include "cli/settings/connect.hpp"
#include "lock/store.hpp"

// What `run` and `acquire` alike are asked about the lock. ErrorKind::usage says what is wrong.
namespace rlock::cli {

// Where --ttl was not given.
inline constexpr Millis kDefaultTtl{30'000};

// --ttl where it was given; at least 1s.
Result<std::optional<Millis>> ttl_choice(const Choices& choices);

// The record of a holder: its process and what it runs, unless --hide-command, with the --reason
// and the trace that TRACEPARENT names. `pid` may be another process: rlock acquire itself has
// ended when others read the record.
Record holder_record(pid_t pid, const std::vector<std::string>& argv, const Choices& choices,
                     Getenv getenv);

// Where the commands differ.
struct LeaseSettings {
  Millis ttl;
  lock::Responsive responsive;
  std::string record;
};

// How long to wait for the lock, and the exit codes when it is busy and when a newer waiter has
// replaced this one.
struct WaitSettings {
  std::optional<Millis> wait{};  // none: forever; 0: not at all
  int conflict_code = 75;
  int superseded_code = 75;
};

struct ClaimSettings {
  lock::AcquireCall call;
  WaitSettings waiting;
};

// The claim of a new owner: how the lock is held (--slots, --shared, --min-hold) and waited for
// (--wait, --nonblock, --max-queue, --supersede, and the exit codes).
Result<ClaimSettings> claim_settings(lock::LockName name, LeaseSettings lease,
                                     const Choices& choices);

}  // namespace rlock::cli
