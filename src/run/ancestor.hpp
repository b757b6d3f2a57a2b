#pragma once

#include <sys/types.h>

#include "util/clock.hpp"

namespace rlock::run {

// Whether the process that had the number `pid` at `then` runs and is an ancestor of this one. A
// process of which rlock runs above stays one: rlock adopts the orphans among its descendants.
// False as well where /proc does not show it: in a container, on another host.
bool is_live_ancestor(pid_t pid, TimePoint then) noexcept;

}  // namespace rlock::run
