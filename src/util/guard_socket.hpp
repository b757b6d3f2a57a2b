#pragma once

#include <sys/types.h>

// A background renewer, or the server of a `local:` URL, that is started inside of a run descends
// from that run's guard like any of its processes, but serves others, too. By itself it asks each
// guard above it to be left alone, over a socket that is named by the guard's pid; the kernel
// vouches for both ends. All of it is async-signal-safe.
namespace rlock::util {

// By a guard: the listening socket; -1 where it cannot be had, and then everybody is ended.
int listen_as_guard() noexcept;
// The pid of a process that asks; 0 when none does. `listener` is readable then.
pid_t accept_exempt(int listener) noexcept;

// By the process that is to outlive the runs around it, before it says that it is ready.
void ask_guards_for_exemption() noexcept;

}  // namespace rlock::util
