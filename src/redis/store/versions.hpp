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

// The rules in `!word version !word version…`, as scripts list them; nullopt if there are none.
std::optional<lock::NewerRules> newer_rules(std::string_view text);

// The error for a script's `FORM N` or `UNKNOWN !WORD VERSION…`, with which it refuses such a lock;
// Cause::other_version. nullopt for other texts. `keys`: the keys of the lock.
std::optional<Error> other_version(std::string_view text, std::span<const std::string> keys,
                                   const Server& server);

// The page with all locks of another form, and all with rules of a later version, counted as in
// use: rlock cannot know that the former are free, and does not acquire the latter.
lock::InFlight<lock::NamesPage> with_other_versions(Link& link, const std::string& prefix,
                                                    lock::NamesPage page);

}  // namespace rlock::redis
