#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/options.hpp"
#include "cli/options/parse.hpp"

// Settings are resolved once: command line over environment over files over defaults.
namespace rlock::cli {

// getenv(3), or a test's function.
using Getenv = const char* (*)(const char*);
const char* system_getenv(const char* name);

// The files that rlock reads if neither --config nor RLOCK_CONFIG names one: first the user's,
// which takes precedence, then the machine's.
std::vector<std::string> default_config_files(Getenv getenv);

// A sentence for each of them in a folder that rlock may not enter. A run ignores such a file,
// because it is normal under systemd's ProtectHome= and with another user's HOME.
std::vector<std::string> unreachable_files(Getenv getenv);

using Warnings = std::vector<std::string>;

// The variables in a command's environment: rlock sets or removes each of them.
std::span<const std::string_view> command_variables();

// Allows what later versions call unstable. rlock knows the name, so that a fleet whose hosts have
// several versions can set it for all.
inline constexpr std::string_view kUnstableVariable = "RLOCK_UNSTABLE";

// The variables that an option reads.
std::vector<std::string_view> variables_of(const OptionRow& row);

// The variables that begin with RLOCK_ but are neither settings of rlock nor those of a platform.
std::vector<std::string> unknown_variables(std::span<const std::string> names);
// A warning about each of them; none inside a run, which was itself warned.
Warnings variable_warnings(std::span<const std::string> names);
std::vector<std::string> environment_names();

// A sentence for each setting of the environment or a file that no run uses: a login for another
// server, variables that rlock does not know, and default files that it cannot reach.
std::vector<std::string> ignored_settings(const Choices& choices);

// Completes the settings of the command line from the environment and the files. With --config or
// RLOCK_CONFIG rlock reads only that file, and it must exist. A default file may be missing. The
// machine's file, which is the last one, is skipped with a warning if this user may not read it and
// another source names a server. Warns of a password in --url. ErrorKind::usage: a bad value in the
// environment, or settings of one source that exclude each other; ErrorKind::config: a file cannot
// be used.
Result<Warnings> resolve(Invocation& invocation, Getenv getenv,
                         std::span<const std::string> default_files);

}  // namespace rlock::cli
