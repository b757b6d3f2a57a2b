#pragma once

#include <string>
#include <vector>

#include "util/clock.hpp"

namespace rlock::test {

// The result of a program with a terminal of its own for stdin, stdout and stderr.
struct Shown {
  std::string text;  // all that reached the terminal
  int code = -1;     // as a shell shows it; -1: it had to be ended
  Millis took{0};
};

// Runs argv to its end, for `patience` and with `memory` bytes (of address space) at most.
Shown on_terminal(std::vector<std::string> argv, Millis patience, size_t memory);

}  // namespace rlock::test
