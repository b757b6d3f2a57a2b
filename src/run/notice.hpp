#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "run/run.hpp"

// Why the steps of a process are without the lock that was renewed for them, though nobody released
// it.
namespace rlock::run {

// By an operator. Nobody ends the steps.
struct Broken {
  lock::Lost how;
  // When the lease ends, if the lock waits for the process until then; none: another may hold it
  // now.
  std::optional<Millis> left;
};

// The process ended within its first lease: the steps may be other processes.
struct EndedEarly {
  Millis after;  // its acquisition
};

using Notice = std::variant<LeaseEnd, Broken, EndedEarly>;

// A line for people; empty: none.
using DescribeNotice = std::function<std::string(const Notice&)>;

}  // namespace rlock::run
