#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/parse.hpp"
#include "cli/settings/connect.hpp"

namespace rlock::cli {

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
  std::string_view name;  // the key in a configuration file
  std::string value;      // empty: not set. A password is masked.
  Source source = Source::fallback;
  std::string place;  // `--url`, `RLOCK_URL`, `/etc/rlock/rlock.toml:3`; empty for a default
};
EffectiveSetting effective_setting(Opt id, const Choices& choices, Getenv getenv);

}  // namespace rlock::cli
