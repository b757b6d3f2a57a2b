#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/options/options.hpp"

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
  void set_from_file(Opt id, std::vector<std::string> values) {
    set(id, std::move(values));
    from_file_[index(id)] = true;
  }
  // Given on the command line.
  bool is_flag(Opt id) const { return has(id) && !from_file_[index(id)]; }
  // From a configuration file. There is no such option, because every user can read argv.
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
  std::vector<std::string> names;                        // before `--`
  std::optional<std::vector<std::string>> after_dashes;  // none without a `--`
};

struct ShortHelp {};  // `rlock` alone
struct Help {
  std::optional<CommandId> command;
};
struct Version {};
using CommandLine = std::variant<Invocation, ShortHelp, Help, Version>;

}  // namespace rlock::cli
