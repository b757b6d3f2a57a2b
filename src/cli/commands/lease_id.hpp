#pragma once

#include <optional>

#include "cli/commands/session.hpp"

namespace rlock::cli {

// `renew` and `release` are about one owner of one lock.
struct LeaseId {
  lock::LockName name;
  lock::Owner owner;
};

// From NAME and --owner ID; ErrorKind::usage says what is wrong. RLOCK_OWNER is not read: inside a
// run it names that run's own lock.
Result<LeaseId> parse_lease_id(const Invocation& invocation);

// ErrorKind::lost: what became of that owner's lock, `how` as a phrase, and who has it now.
Error no_longer_held(const LeaseId& lease, const std::string& how,
                     const std::optional<lock::Holder>& now, const std::string& server);

}  // namespace rlock::cli
