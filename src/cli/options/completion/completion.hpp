#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/options.hpp"

// What is written from the tables in options.hpp besides --help: completion scripts and the option
// lists of the manual.
namespace rlock::cli {

enum class Shell : uint8_t { bash, zsh, fish };

std::optional<Shell> find_shell(std::string_view name);

// The whole completion script, as `rlock completion` prints it.
std::string completion_script(Shell shell);

// `page` with lists of options in the place of its lines `@options COMMAND@` and
// `@general options@`. Nothing when it asks for a command that is not there.
std::optional<std::string> manual_page(std::string_view source);

// ---- what the tables say to all of the writers ----

enum class ValueKind : uint8_t { none, text, words, file, folder };
ValueKind value_kind(const OptionRow& row);

// `a|b|c` with blanks between the words.
std::string spaced(std::string_view alternatives);

// What a command takes beside its options, read from its usage.
enum class Operands : uint8_t { name, names, name_and_command, words };
struct OperandsRow {
  Operands kind;
  std::string_view words;  // with Operands::words: `a|b|c`
};
OperandsRow operands_of(const CommandRow& command);

// `-w`, `--wait`: those that the option has.
std::vector<std::string> spellings(const OptionRow& row);

// `text` with a backslash before each of the characters.
std::string escaped(std::string_view text, std::string_view characters);

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace rlock::cli
