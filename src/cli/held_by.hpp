#pragma once

#include <optional>

#include "cli/session.hpp"

namespace rlock::cli {

// `renew` and `release` are about one owner of one lock.
struct OwnerOf {
  lock::LockName name;
  lock::Owner owner;
};

// From NAME and --owner ID; ErrorKind::usage says what is wrong. RLOCK_OWNER is not read: inside a
// run it names that run's own lock.
util::Result<OwnerOf> owner_of(const Invocation& invocation);

// ErrorKind::lost: what became of that owner's lock, `how` as a phrase, and who has it now.
util::Error no_longer_held(const OwnerOf& whose, const std::string& how,
                           const std::optional<lock::Holder>& now, const std::string& server);

}  // namespace rlock::cli
