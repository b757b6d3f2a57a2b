#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/options.hpp"
#include "util/result.hpp"

namespace rlock::cli {

// One `key = value` of a configuration file: its option, with the words of the command line.
struct Setting {
  Opt id;
  std::vector<std::string> values;  // none: a flag that is false
  unsigned line = 0;
  bool literal = false;  // of `password`: the value is the password, not the file that has it
};

enum class ConfigSection : uint8_t { top, run };

// Where a file may set the option. Not what one call prints: with `quiet` in a file, a plain
// `status` would behave as `status -q`.
std::optional<ConfigSection> section_of(const OptionRow& row);

// The keys are the long names of the options table: connection options at the top, those of `run`
// in the table [run]. `password` is the only key without an option. Relative paths are resolved
// from the file's folder. ErrorKind::config `PATH:LINE: …` for bad syntax, an unknown key or a
// value of the wrong type; never with a part of a password.
Result<std::vector<Setting>> parse_config(const std::string& path, std::string_view text);

}  // namespace rlock::cli
