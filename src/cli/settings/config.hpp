#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options/parse.hpp"

// Reads one configuration file.
namespace rlock::cli {

// The settings of one source: the command line, the environment, or a file.
using Layer = std::vector<std::pair<Opt, Setting>>;

// Whether the option is one of three for the same setting, the password.
constexpr bool is_password(Opt id) {
  return id == Opt::password || id == Opt::password_file || id == Opt::password_command;
}

// The keys are names of the options table: those of Section::general at the top, those of
// Section::command in the table [run]. Relative paths are resolved from the file's folder.
// ErrorKind::config `PATH:LINE: …` for bad syntax, an unknown key, and a value of the wrong type or
// outside its range; never with a part of a password.
Result<Layer> parse_config(const std::string& path, std::string_view text);

// The origin of a file, which decides which users may write and read it.
enum class Origin { user, machine, named };

// nullopt: this default file does not exist. ErrorKind::denied: this user may not read the
// machine's file; ErrorKind::config, with file and line: it cannot be read, is not safe against
// other users, or is not valid.
Result<std::optional<Layer>> load_config(const std::string& path, Origin origin);

// Whether a folder on the way to the file cannot be entered, so that nobody knows whether it
// exists.
bool is_out_of_reach(const std::string& path);

}  // namespace rlock::cli
