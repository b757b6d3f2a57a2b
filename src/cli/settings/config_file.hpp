#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/options.hpp"
#include "util/result.hpp"

namespace rlock::cli {

// One `key = value` of a configuration file, as the words of its option.
struct Setting {
  Opt id;
  std::vector<std::string> values;  // none: a flag that is false
  unsigned line = 0;
  bool literal = false;  // `password`: the value itself, where the option names a file of it
};

// Which option a key of a configuration file sets comes from the options table: a long name of the
// connection options at the top, one of run's own options in the table [run]. `password` is the
// only key without an option. Relative paths are made to start at the file's folder.
// ErrorKind::config `PATH:LINE: …` for bad syntax, an unknown key and a value of the wrong type;
// never with a part of a password.
Result<std::vector<Setting>> parse_config(const std::string& path, std::string_view text);

}  // namespace rlock::cli
