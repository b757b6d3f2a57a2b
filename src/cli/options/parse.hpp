#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/options/options.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::cli {

// The value of an option that was given without a value: a flag in a configuration file, or an
// option whose value is optional.
inline constexpr const char* kFlagValue = "true";

enum class Source : uint8_t { option, environment, file, fallback };

// The setting of one option. Its value has been checked (values.hpp).
struct Setting {
  // As on the command line; empty: not set, or a flag that is off.
  std::vector<std::string> words{};
  Source source = Source::fallback;
  std::string place{};  // `--url`, `RLOCK_URL`, `/etc/rlock/rlock.toml:3`; empty for a default
  std::variant<std::monostate, uint64_t, Millis> value{};  // of the last word
};

// The settings of one invocation: those of the command line, which resolve() completes from the
// other sources.
class Choices {
 public:
  const Setting& operator[](Opt id) const { return settings_[static_cast<size_t>(id)]; }
  void set(Opt id, Setting setting) { settings_[static_cast<size_t>(id)] = std::move(setting); }

  bool has(Opt id) const { return !(*this)[id].words.empty(); }
  const std::vector<std::string>& all(Opt id) const { return (*this)[id].words; }
  // The last value, if an option was given several times, as with getopt.
  std::optional<std::string> last(Opt id) const {
    return has(id) ? std::optional(all(id).back()) : std::nullopt;
  }
  // Returns nullopt if the option is absent or was given without its value.
  std::optional<uint64_t> number(Opt id) const { return value<uint64_t>(id); }
  std::optional<Millis> duration(Opt id) const { return value<Millis>(id); }
  // Why a password is not used: its source names another server, which this text names.
  const std::string& unused_login() const { return unused_login_; }
  void set_unused_login(std::string text) { unused_login_ = std::move(text); }
  // Whether the option was given on the command line.
  bool is_flag(Opt id) const { return (*this)[id].source == Source::option; }

 private:
  template <class T>
  std::optional<T> value(Opt id) const {
    const T* found = std::get_if<T>(&(*this)[id].value);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }
  std::array<Setting, kOptCount> settings_;
  std::string unused_login_;
};

struct Invocation {
  CommandId command;
  Choices choices;
  std::vector<std::string> names;                        // before `--`
  std::optional<std::vector<std::string>> after_dashes;  // nullopt if there is no `--`
};

struct NoCommand {};                              // `rlock` alone
enum class HelpLength : uint8_t { brief, full };  // -h, --help
struct Help {
  std::optional<CommandId> command;
  HelpLength length = HelpLength::full;
};
struct ExitCodeHelp {
  std::optional<int> code;  // nullopt: the list of all codes
};
struct GuaranteesHelp {};  // `rlock help guarantees`
struct ManualPage {
  std::string file;  // rlock-run.1
};
struct Version {
  bool json = false;
};
using CommandLine =
    std::variant<Invocation, NoCommand, Help, ExitCodeHelp, GuaranteesHelp, ManualPage, Version>;

// Parses the words after the program's name. ErrorKind::usage for an unknown word (the error
// suggests the most similar known one) and for a missing value. Keeps everything after the first
// `--` byte for byte.
Result<CommandLine> parse(std::span<const std::string> words);

// Returns the topics of rlock help: exit-codes, the commands, the pages of the manual and the exit
// codes.
std::vector<std::string> help_topics();

// The command in the words, even if parse() rejects the rest of them.
std::optional<CommandId> named_command(std::span<const std::string> words);

// Whether an error of parse() itself has to be printed as JSON too.
bool asks_for_json(std::span<const std::string> words);

// The number of insertions, deletions, replacements and swapped neighbours between the two, in
// bytes.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that a mistyped word most likely meant, if one is similar enough.
std::optional<std::string_view> suggestion(std::string_view word,
                                           std::span<const std::string_view> candidates);

}  // namespace rlock::cli
