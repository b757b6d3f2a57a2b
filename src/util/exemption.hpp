#pragma once

#include <signal.h>

// A background renewer, or the server of a `local:` URL, that is started inside of a run descends
// from that run's guard like any of its processes, but serves others, too. By itself it asks each
// guard above it to be left alone, with a signal: the kernel lets only root and the guard's own
// user send it, says who did, and keeps it until the guard reads it, before it ends anything. All
// of it is async-signal-safe.
namespace rlock::util {

// The name of a guard. Neither `pkill rlock` nor `pkill -f` with the command line may match: both
// would go together and leave the command. At most 15 characters, as PR_SET_NAME takes them.
inline constexpr char kGuardName[] = "lease-guard";

// By which one asks. Of real time: it is queued for each who asks.
inline int exemption_signal() noexcept {
  return SIGRTMAX;
}

// By the process that is to outlive the runs around it, before it says that it is ready. False
// where it cannot: the guard of a contained run is the init of our pid namespace.
bool ask_guards_for_exemption() noexcept;

// Writes the digits of `number` at `at`, and returns where they end. [snprintf is not
// async-signal-safe]
char* write_number(char* at, unsigned number) noexcept;

}  // namespace rlock::util
