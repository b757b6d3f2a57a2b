#pragma once

#include <string>
#include <vector>

#include "run/shared_state.hpp"

namespace rlock::run {

// For messages: `process 4711 (sleep) of root: Operation not permitted`, one a survivor.
std::vector<std::string> describe(const Survivors& survivors);

// For others to see: `cannot end pid 4711 of root`; of several the first, and how many there are.
std::string summary(const Survivors& survivors);

}  // namespace rlock::run
