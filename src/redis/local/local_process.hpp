#pragma once

#include <sys/types.h>

#include <string>

#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// The first redis-server on PATH, else the first valkey-server; empty if there is none.
std::string find_server_program();

struct LocalProcess {
  std::string program;
  std::string folder;
  // Held by the server as long as it lives, so that no second one starts: the lock on a file of the
  // folder, and a listening socket (or none), whose peers get the pid of the server.
  const util::Fd& lock;
  const util::Fd& name;
  const util::Fd& log;
};

// Starts the server in a session of its own, not as our child: with default signals, an empty
// environment, no descriptors but the log, the lock and the name, and our resource limits lifted.
// Returns its pid; ErrorKind::system: it cannot be started, or a limit that cannot be lifted would
// end it.
Result<pid_t> start_local_process(const LocalProcess& process);

}  // namespace rlock::redis
