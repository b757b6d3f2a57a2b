#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/parse.hpp"
#include "redis/open.hpp"

namespace rlock::cli {

// getenv(3), or a test's.
using Getenv = const char* (*)(const char*);
const char* system_getenv(const char* name);

// Where a password comes from when no file names it: read here, and kept from the command.
inline constexpr const char* kPasswordVariables[] = {"RLOCK_PASSWORD", "REDISCLI_AUTH"};

// Where to connect and as whom: flags over the environment (a file's settings are among
// the choices already). ErrorKind::config when no server is
// given or the password file cannot be read, ErrorKind::usage for a bad value.
Result<redis::OpenOptions> connection_options(const Choices& choices, Getenv getenv);

}  // namespace rlock::cli
