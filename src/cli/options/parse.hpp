#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/options/options.hpp"
#include "util/result.hpp"

namespace rlock::cli {

// The options as they were given: text, not yet understood.
class Choices {
 public:
  bool has(Opt id) const { return !values_[index(id)].empty(); }
  // Given twice, the last one counts, as with getopt.
  std::optional<std::string> last(Opt id) const {
    return has(id) ? std::optional(values_[index(id)].back()) : std::nullopt;
  }
  const std::vector<std::string>& all(Opt id) const { return values_[index(id)]; }
  void set(Opt id, std::vector<std::string> values) { values_[index(id)] = std::move(values); }
  void set_from_file(Opt id, std::vector<std::string> values) {
    set(id, std::move(values));
    from_file_[index(id)] = true;
  }
  // Given on the command line.
  bool is_flag(Opt id) const { return has(id) && !from_file_[index(id)]; }
  // From a configuration file; there is no such option, since argv is public.
  const std::optional<std::string>& password() const { return password_; }
  void set_password(std::string password) { password_ = std::move(password); }

 private:
  static size_t index(Opt id) { return static_cast<size_t>(id); }
  std::array<std::vector<std::string>, kOptCount> values_;
  std::array<bool, kOptCount> from_file_{};
  std::optional<std::string> password_;
};

struct Invocation {
  CommandId command;
  Choices choices;
  std::vector<std::string> names;                        // the words before `--`
  std::optional<std::vector<std::string>> after_dashes;  // none: there was no `--`
};

struct ShortHelp {};  // `rlock` alone
struct Help {
  std::optional<CommandId> command;
};
struct Version {};
using CommandLine = std::variant<Invocation, ShortHelp, Help, Version>;

// Reads the words after the program's name. ErrorKind::usage: an unknown word (with the one that
// may have been meant), a missing value. Everything after the first `--` is left as it is, byte for
// byte.
Result<CommandLine> parse(std::span<const std::string> words);

// Whether an error of parse() itself is to be told as JSON too.
bool asks_for_json(std::span<const std::string> words);

}  // namespace rlock::cli
