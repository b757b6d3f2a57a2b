#pragma once

#include <optional>
#include <string>
#include <vector>

#include "redis/reply.hpp"
#include "redis/server.hpp"
#include "util/result.hpp"

// How a connection introduces itself, before or together with its first command.
namespace rlock::redis {

enum class SetUp { auth, select, role, set_name, ping, durability, uptime };
const char* word(SetUp step);

// In the order of sending; never empty, so that each fresh connection has an answer to wait for.
// Some proxies hang up on CLIENT SETNAME: a name is of use to operators alone.
enum class Naming { wanted, refused };
std::vector<SetUp> set_up_steps(const Server& server, Naming naming);

std::string encode(SetUp step, const Server& server);

// What earlier answers of the same set-up said.
struct SetUpNotes {
  bool synchronous = false;  // each write is on the server's disk before its answer
};

// Why the connection is of no use after this answer to `step`; nullopt: go on. No words of a
// refused AUTH are passed on: some servers quote the command back, password and all. [FAULTS 38]
std::optional<util::Error> verdict(SetUp step, const redisReply& reply, const Server& server,
                                   SetUpNotes& notes);

}  // namespace rlock::redis
