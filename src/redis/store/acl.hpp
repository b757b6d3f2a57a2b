#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// The permissions that rlock needs at a server. [docs/PROTOCOL.md, "Server permissions"]
namespace rlock::redis {

// The kind of target to which a server belongs: all but a single server get a few more commands.
enum class ServerKind { single, quorum_member, sentinel_master, cluster_node };

// `text` as a pattern that matches only this key, because patterns are globs.
std::string glob_quoted(std::string_view text);

// The rule for ACL SETUSER that allows exactly what rlock does with locks under `prefix`: its keys,
// and the commands that the scripts contain; with `replicas`, also the commands for them.
std::string least_acl(std::string_view prefix, ServerKind kind = ServerKind::single,
                      uint64_t replicas = 0);

// The rule for a user of a sentinel.
inline constexpr const char* kSentinelAcl =
    "resetchannels -@all +sentinel|get-master-addr-by-name +sentinel|sentinels +sentinel|myid "
    "+client|setname";

// The commands in the line of `script` at which it stopped according to the server's `error`; empty
// if `error` names no line. Redis 7.0 reports the line, but not the command.
std::string command_at(std::string_view error, std::string_view script);

// Which of `keys` the command in that line names: the script has a variable for each key, for
// example QUEUE for `…:queue`. Empty if the line is not known.
std::string key_at(std::string_view error, std::string_view script,
                   std::span<const std::string> keys);

// `error` with the file and line of src/lua instead of each line of `script` that it names, for
// example `release.lua:34` instead of `user_script:512`.
std::string with_sources(std::string_view error, std::string_view script);

}  // namespace rlock::redis
