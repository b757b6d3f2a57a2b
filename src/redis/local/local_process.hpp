#pragma once

#include <sys/types.h>

#include <string>

#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// redis-server or valkey-server, the first one on PATH; empty where there is none.
std::string find_server_program();

struct LocalProcess {
  std::string program;
  std::string folder;
  const util::Fd& lock;  // held by the server as long as it lives: no second one beside it
  const util::Fd& log;
};

// Starts the server in a session of its own, no child of ours: default signals, a clean
// environment, no descriptor but the log and the lock, and no limit of ours that may be lifted. Its
// pid; ErrorKind::system when it cannot be started, or would be ended by a limit that may not.
Result<pid_t> start_local_process(const LocalProcess& process);

}  // namespace rlock::redis
