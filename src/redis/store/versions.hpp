#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lock/inspector.hpp"
#include "redis/link/link.hpp"
#include "util/result.hpp"

// Locks that another version of rlock has stored. [docs/PROTOCOL.md, "Versions"]
namespace rlock::redis {

// The number of the form in which this rlock stores locks.
int stored_form();

// The error for a script's `FORM N` or `UNKNOWN !WORD VERSION`, with which it refuses such a lock;
// Cause::other_version. nullopt for other texts. `keys`: the keys of the lock.
std::optional<Error> other_version(std::string_view text, std::span<const std::string> keys,
                                   const Server& server);

// The page with all locks of another form counted as in use, because rlock cannot know that they
// are free.
lock::InFlight<lock::NamesPage> with_other_forms(Link& link, const std::string& prefix,
                                                 lock::NamesPage page);

}  // namespace rlock::redis
