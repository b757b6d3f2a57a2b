#pragma once

#include <optional>
#include <string>
#include <vector>

#include "redis/link/reply.hpp"
#include "redis/net/server.hpp"
#include "util/result.hpp"

// How a connection introduces itself, before or together with its first command.
namespace rlock::redis {

enum class HandshakeStep { auth, select, role, set_name, ping, durability, uptime };
const char* to_string(HandshakeStep step);

// In the order of sending; never empty, so that each fresh connection has an answer to wait for.
// Some proxies hang up on CLIENT SETNAME: a name is of use to operators alone.
enum class ClientNaming { wanted, refused };
std::vector<HandshakeStep> handshake_steps(const Server& server, ClientNaming naming);

std::string encode(HandshakeStep step, const Server& server);

// What earlier answers of the same set-up said.
struct HandshakeState {
  bool synchronous = false;  // each write is on the server's disk before its answer
};

// Why the connection is of no use after this answer to `step`; nullopt: go on. No words of a
// refused AUTH are passed on: some servers quote the command back, password and all.
std::optional<Error> check_step(HandshakeStep step, const redisReply& reply, const Server& server,
                                HandshakeState& notes);

}  // namespace rlock::redis
