#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/parse.hpp"
#include "redis/open.hpp"

namespace rlock::cli {

// getenv(3), or a test's.
using Getenv = const char* (*)(const char*);
const char* system_getenv(const char* name);
const char* empty_environment(const char* name);

// A variable that is set, but to nothing, counts as not set.
std::optional<std::string> variable(Getenv getenv, std::string_view name);

// Where a password may come from; the command that runs under the lock does not inherit them.
inline constexpr const char* kPasswordVariables[] = {"RLOCK_PASSWORD", "REDISCLI_AUTH"};

// Where to connect and as which user: flags over the environment; the settings of files are among
// the choices already. ErrorKind::config when no server is given or the password file cannot be
// read, ErrorKind::usage for a bad value.
Result<redis::OpenOptions> connection_options(const Choices& choices, Getenv getenv);

}  // namespace rlock::cli
