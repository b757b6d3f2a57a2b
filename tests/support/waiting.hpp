#pragma once

#include <unistd.h>

#include "util/clock.hpp"

namespace rlock::test {

// Generous: only a failing test waits so long.
inline constexpr Millis kPatience{60'000};

// Waits until `holds` does, asking again and again; false when patience ends.
template <class Condition>
bool eventually(Condition holds, Millis patience = kPatience) {
  const TimePoint end = BootClock::now() + patience;
  while (!holds()) {
    if (BootClock::now() >= end) return false;
    usleep(1'000);
  }
  return true;
}

}  // namespace rlock::test
