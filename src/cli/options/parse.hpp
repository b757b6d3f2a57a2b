#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/options/options.hpp"
#include "util/result.hpp"

namespace rlock::cli {

// The value of an option that was given without one: of a flag in a configuration file, and of an
// option whose value is optional.
inline constexpr const char* kFlagValue = "true";

// The options of one invocation, as text: values.hpp parses it.
class Choices {
 public:
  bool has(Opt id) const { return !values_[index(id)].empty(); }
  // Of an option that was given twice, the last value counts, as with getopt.
  std::optional<std::string> last(Opt id) const {
    return has(id) ? std::optional(values_[index(id)].back()) : std::nullopt;
  }
  const std::vector<std::string>& all(Opt id) const { return values_[index(id)]; }
  void set(Opt id, std::vector<std::string> values) { values_[index(id)] = std::move(values); }
  // `place`: `/etc/rlock/rlock.toml:3`.
  void set_from_file(Opt id, std::vector<std::string> values, std::string place) {
    set(id, std::move(values));
    place_[index(id)] = std::move(place);
  }
  // Where it is in a configuration file; empty for an option of the command line.
  const std::string& place(Opt id) const { return place_[index(id)]; }
  // Given on the command line.
  bool is_flag(Opt id) const { return has(id) && place(id).empty(); }
  // From a configuration file. There is no such option, because every user can read argv.
  const std::optional<std::string>& password() const { return password_; }
  const std::string& password_place() const { return password_place_; }
  void set_password(std::string password, std::string place) {
    password_ = std::move(password);
    password_place_ = std::move(place);
  }

 private:
  static size_t index(Opt id) { return static_cast<size_t>(id); }
  std::array<std::vector<std::string>, kOptCount> values_;
  std::array<std::string, kOptCount> place_;
  std::optional<std::string> password_;
  std::string password_place_;
};

struct Invocation {
  CommandId command;
  Choices choices;
  std::vector<std::string> names;                        // before `--`
  std::optional<std::vector<std::string>> after_dashes;  // none without a `--`
};

struct NoCommand {};                              // `rlock` alone
enum class HelpLength : uint8_t { brief, full };  // -h, --help
struct Help {
  std::optional<CommandId> command;
  HelpLength length = HelpLength::full;
};
struct Version {
  bool json = false;
};
using CommandLine = std::variant<Invocation, NoCommand, Help, Version>;

// Parses the words after the program's name. ErrorKind::usage for an unknown word (the error
// suggests the most similar known one) and for a missing value. Everything after the first `--` is
// kept byte for byte.
Result<CommandLine> parse(std::span<const std::string> words);

// The command that the words name, even if parse() rejects the rest of them.
std::optional<CommandId> named_command(std::span<const std::string> words);

// Whether an error of parse() itself is to be printed as JSON too.
bool asks_for_json(std::span<const std::string> words);

// Insertions, deletions, replacements and swapped neighbours between the two, in bytes.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that a mistyped word most likely meant, if one is similar enough.
std::optional<std::string_view> suggestion(std::string_view word,
                                           std::span<const std::string_view> candidates);

}  // namespace rlock::cli
