#pragma once

#include <string>
#include <string_view>

// What the server must allow, and which of it was denied. [LESSONS L36, L46; FAULTS 40]
namespace rlock::redis {

// How the server stands to others: each kind is asked a little more.
enum class Standing { alone, of_quorum, of_sentinels, of_cluster };

// The rule for ACL SETUSER that lets a user of locks under `prefix` do everything rlock does, and
// nothing else: keys and commands, as they stand in the scripts.
std::string least_acl(std::string_view prefix, Standing standing = Standing::alone);

// For a user of a sentinel.
inline constexpr const char* kSentinelAcl =
    "resetchannels -@all +sentinel|get-master-addr-by-name +client|setname";

// The commands that `script` calls in the line in which the server says, in `error`, that it
// stopped; empty: it does not say. Redis 7.0 tells the line, but not the command.
std::string command_at(std::string_view error, std::string_view script);

}  // namespace rlock::redis
