#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/options/parse.hpp"
#include "cli/settings/connect.hpp"

namespace rlock::cli {

// The files that are read where neither --config nor RLOCK_CONFIG names one, the strongest first:
// the user's, then the machine's.
std::vector<std::string> default_config_files(Getenv getenv);

using Warnings = std::vector<std::string>;

// Sets what neither a flag nor the environment decides: flag > environment > the files in their
// order > default. --config or RLOCK_CONFIG: that file alone, and it must be there. A default file
// that is missing is none; the machine's, which is the last of them, is skipped with a warning
// where this user may not read it and a server was named without it. ErrorKind::config names file
// and line: cannot be read, not safe against other users, bad syntax, unknown key, wrong type or
// value.
Result<Warnings> apply_config(Invocation& invocation, Getenv getenv,
                              std::span<const std::string> default_files);

}  // namespace rlock::cli
