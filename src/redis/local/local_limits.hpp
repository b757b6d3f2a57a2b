#pragma once

#include <optional>

namespace rlock::redis {

// A limit that no server outlives.
enum class FatalLimit { cpu_time, file_size };

// For a process that others will use, too: it is not to be bound by the resource limits, the
// niceness and the OOM score of whoever happens to start it. Lifts of these what may be lifted, and
// tells which one is left that would end a server sooner or later. Async-signal-safe: for between
// fork and exec.
std::optional<FatalLimit> lift_limits();

}  // namespace rlock::redis
