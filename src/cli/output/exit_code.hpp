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

inline int exit_code(ErrorKind kind) {
  return static_cast<int>(kind);
}

// The end of a message: which command helps further. Empty where none does.
inline std::string_view next_step(ErrorKind kind) {
  const bool server_failed = kind == ErrorKind::unavailable || kind == ErrorKind::denied;
  return server_failed ? "; rlock doctor checks the server" : "";
}

}  // namespace rlock::cli
