#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options/parse.hpp"

// One configuration file.
namespace rlock::cli {

// What one source sets: the command line, the environment, or a file.
using Layer = std::vector<std::pair<Opt, Setting>>;

// Three options for one setting.
constexpr bool is_password(Opt id) {
  return id == Opt::password || id == Opt::password_file || id == Opt::password_command;
}

// The keys are names of the options table: those of Section::general at the top, those of
// Section::command in the table [run]. Relative paths are resolved from the file's folder.
// ErrorKind::config `PATH:LINE: …` for bad syntax, an unknown key, and a value of the wrong type or
// outside its range; never with a part of a password.
Result<Layer> parse_config(const std::string& path, std::string_view text);

// Whose file it is: who may write and read it depends on that.
enum class Origin { user, machine, named };

// None: this default file does not exist. ErrorKind::denied: this user may not read the machine's;
// ErrorKind::config names file and line: cannot be read, not safe against other users, not valid.
Result<std::optional<Layer>> load_config(const std::string& path, Origin origin);

}  // namespace rlock::cli
