#pragma once

#include <string_view>

#include "util/result.hpp"

namespace rlock::cli {

enum ExitCode : int {
  kSuccess = 0,
  kNotHeld = 1,  // of `status -q`
  kUsage = 64,
  kWrongType = 65,
  kUnavailable = 69,
  kInternal = 70,
  kSystem = 71,
  kBusy = 75,
  kLost = 76,
  kDenied = 77,
  kConfig = 78,
  kRunLimit = 124,
  kCannotExecute = 126,
  kNotFound = 127,
};

int exit_code(ErrorKind kind);

// The end of a message: which command helps further. Empty where none does.
std::string_view next_step(ErrorKind kind);

// As JSON has it: usage, unreachable, refused, busy, lost or internal.
std::string_view json_kind(ErrorKind kind);

}  // namespace rlock::cli
