#pragma once

#include <sys/types.h>

#include "cli/options/parse.hpp"
#include "cli/output/record.hpp"

namespace rlock::cli {

// The record of a lock that `acquire` takes: for process `pid`, since rlock itself is gone when
// others read it. Its command line, unless --hide-command, and the --reason.
Record caller_record(pid_t pid, const Choices& choices);

}  // namespace rlock::cli
