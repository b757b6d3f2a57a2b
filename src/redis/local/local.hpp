#pragma once

#include <string>

#include "redis/net/server.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// Forbidden: only a server that runs already, for whoever merely looks.
enum class LocalStart { allowed, forbidden };

// The private server of this machine in `folder` (empty: ~/.local/state/rlock of the passwd home,
// for root /var/lib/rlock), started where none runs; it stays for the next run. Blocks, at most 10
// s, and only when it must start one. ErrorKind::config: a folder that is not safe or no server
// program; ErrorKind::system: it cannot be started; ErrorKind::unavailable: none runs and none may
// be started.
Result<Server> local_server(const std::string& folder, LocalStart start = LocalStart::allowed);

}  // namespace rlock::redis
