#pragma once

#include <sys/types.h>

#include <optional>

#include "cli/options/parse.hpp"
#include "cli/settings/run_settings.hpp"
#include "run/run.hpp"

namespace rlock::cli {

// What `rlock acquire` was asked for.
struct AcquireSettings {
  run::Plan plan;  // without a command
  WaitSettings waiting{};
  std::optional<pid_t> renew_while{};
};

// ErrorKind::usage says what is wrong. The wait's deadline is not set yet: it counts from the start
// of the acquisition.
Result<AcquireSettings> acquire_settings(const Invocation& invocation);

}  // namespace rlock::cli
