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

// Ends that server with TERM, and waits for its end, at most 10 s; what it has stored stays in the
// folder. False if none was running. ErrorKind::config: the folder is unsafe;
// ErrorKind::unavailable: the server does not end, or is not of this pid namespace.
Result<bool> stop_local_server(const std::string& folder);

}  // namespace rlock::redis
