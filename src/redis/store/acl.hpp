#pragma once

#include <string>
#include <string_view>

// What the server must allow, and which of it was denied. [docs/PROTOCOL.md, "Server permissions"]
namespace rlock::redis {

// How the server stands to others: each kind is asked a little more.
enum class ServerKind { single, quorum_member, sentinel_master, cluster_node };

// The rule for ACL SETUSER that lets a user of locks under `prefix` do everything rlock does, and
// nothing else: keys and commands, as they stand in the scripts.
std::string least_acl(std::string_view prefix, ServerKind kind = ServerKind::single);

// For a user of a sentinel.
inline constexpr const char* kSentinelAcl =
    "resetchannels -@all +sentinel|get-master-addr-by-name +client|setname";

// The commands that `script` calls in the line in which the server says, in `error`, that it
// stopped; empty: it does not say. Redis 7.0 tells the line, but not the command.
std::string command_at(std::string_view error, std::string_view script);

}  // namespace rlock::redis
