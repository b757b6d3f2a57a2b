#pragma once

#include <cstdint>
#include <optional>

#include "redis/link/reply.hpp"
#include "redis/net/server.hpp"
#include "util/result.hpp"

// Whether a server of a quorum may vote: once, under whatever names; and one that started a moment
// ago may have forgotten leases that still stand, unless it writes each of them to its append-only
// file before it answers.
namespace rlock::redis {

// The longest lease over a quorum may have been given just before the restart.
inline constexpr uint64_t kRestartGuardSeconds = 60;

// The answer to CONFIG GET append*: does the server keep what it acknowledged? A refusal: not
// known, hence no.
bool writes_synchronously(const redisReply& reply);

// The answer to INFO server, against the above. nullopt: it votes. ErrorKind::unavailable says
// until when it does not; ErrorKind::denied where it does not tell since when it runs;
// ErrorKind::usage where it is another member under a second name.
std::optional<Error> check_vote(const redisReply& info, bool synchronous, const Server& server);

}  // namespace rlock::redis
