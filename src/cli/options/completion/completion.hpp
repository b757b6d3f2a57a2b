#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/options/options.hpp"

// Completion scripts: each is a template beside this file, filled from the options table.
namespace rlock::cli {

enum class Shell : uint8_t { bash, zsh, fish };

std::optional<Shell> find_shell(std::string_view name);

// The whole completion script, as `rlock completion` prints it.
std::string completion_script(Shell shell);

// ---- for the scripts' writers ----

// What a shell offers for an option's value.
enum class ValueKind : uint8_t { none, text, words, file, folder };
ValueKind value_kind(const OptionRow& row);

// `a|b|c` with spaces between the words.
std::string spaced(std::string_view alternatives);

// What a command takes beside its options, read from its usage.
enum class Operands : uint8_t { name, names, name_and_command, words };
struct OperandsRow {
  Operands kind;
  std::string_view words;  // with Operands::words: `a|b|c`
};
OperandsRow operands_of(const CommandRow& command);

// `text` with a backslash before each of the characters.
std::string escaped(std::string_view text, std::string_view characters);

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

extern const std::string_view kBashTemplate;
extern const std::string_view kZshTemplate;
extern const std::string_view kFishTemplate;

}  // namespace rlock::cli
