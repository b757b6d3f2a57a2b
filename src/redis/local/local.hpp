#pragma once

#include <string>

#include "redis/net/server.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// Forbidden: only a running server is used, for commands that merely look.
enum class LocalStart { allowed, forbidden };

// The private server of this machine in `folder` (empty: ~/.local/state/rlock in the home of
// passwd, for root /var/lib/rlock). Starts one if none is running, which takes at most 10 s; it
// stays for later runs. ErrorKind::config: the folder is unsafe or there is no server program;
// ErrorKind::system: the server cannot be started; ErrorKind::unavailable: none is running and none
// may be started.
Result<Server> local_server(const std::string& folder, LocalStart start = LocalStart::allowed);

}  // namespace rlock::redis
