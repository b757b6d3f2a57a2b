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
  const util::Fd& lock;  // held by the server as long as it lives, so that no second one starts
  const util::Fd& log;
};

// Starts the server in a session of its own, not as our child: with default signals, an empty
// environment, no descriptors but the log and the lock, and our resource limits lifted. Returns its
// pid; ErrorKind::system: it cannot be started, or a limit that cannot be lifted would end it.
Result<pid_t> start_local_process(const LocalProcess& process);

}  // namespace rlock::redis
