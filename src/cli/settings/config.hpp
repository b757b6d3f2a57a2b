#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/parse.hpp"
#include "cli/settings/connect.hpp"

namespace rlock::cli {

// One `key = value` of a configuration file: its option, with the words of the command line.
struct Setting {
  Opt id;
  std::vector<std::string> values;  // none: a flag that is false
  unsigned line = 0;
  bool literal = false;  // of `password`: the value is the password, not the file that has it
};

// Whether a file may set the option: one of Section::general at the top, one of Section::command in
// the table [run]. Not what one call prints: with `quiet` in a file, a plain `status` would behave
// as `status -q`.
bool is_key(const OptionRow& row);

// The keys are the long names of the options table: connection options at the top, those of `run`
// in the table [run]. `password` is the only key without an option. Relative paths are resolved
// from the file's folder. ErrorKind::config `PATH:LINE: …` for bad syntax, an unknown key or a
// value of the wrong type; never with a part of a password.
Result<std::vector<Setting>> parse_config(const std::string& path, std::string_view text);

// The files that are read where neither --config nor RLOCK_CONFIG names one: first the user's,
// which takes precedence, then the machine's.
std::vector<std::string> default_config_files(Getenv getenv);

using Warnings = std::vector<std::string>;

// Sets what neither a flag nor the environment sets: flag > environment > the files in their order
// > default. With --config or RLOCK_CONFIG only that file is read, and it must exist. A default
// file may be missing; the machine's, the last of them, is skipped with a warning where this user
// may not read it and a server is named elsewhere. Warns of a password in --url. ErrorKind::config
// names file and line: cannot be read, not safe against other users, bad syntax, unknown key, wrong
// type or value.
Result<Warnings> apply_config(Invocation& invocation, Getenv getenv,
                              std::span<const std::string> default_files);

enum class Source { option, environment, file, fallback };

// What applies to a run. `choices` come from apply_config().
struct EffectiveSetting {
  Section section;
  std::string_view name;  // the key in a configuration file
  std::string value;      // empty: not set. A password is masked.
  Source source = Source::fallback;
  std::string place;  // `--url`, `RLOCK_URL`, `/etc/rlock/rlock.toml:3`; empty for a default
};
EffectiveSetting effective_setting(Opt id, const Choices& choices, Getenv getenv);

}  // namespace rlock::cli
