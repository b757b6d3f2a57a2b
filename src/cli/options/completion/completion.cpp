#include "cli/options/completion/completion.hpp"

#include <algorithm>
#include <cstdint>

#include "cli/options/help.hpp"
#include "cli/options/options.hpp"

namespace rlock::cli {
namespace {

// What a shell offers for an option's value.
enum class ValueKind : uint8_t { none, text, words, file, folder };

// What a command takes beside its options, read from its usage.
enum class Operands : uint8_t { name, names, name_and_command, words };
struct OperandsRow {
  Operands kind;
  std::string_view words;  // with Operands::words: `a|b|c`
};

ValueKind value_kind(const OptionRow& row) {
  if (!row.takes_next_word()) return ValueKind::none;
  if (row.metavar.find('|') != row.metavar.npos) return ValueKind::words;
  if (row.metavar == "FILE") return ValueKind::file;
  return row.metavar == "DIR" ? ValueKind::folder : ValueKind::text;
}

// `a|b|c` with spaces between the words.
std::string spaced(std::string_view alternatives) {
  std::string out(alternatives);
  std::replace(out.begin(), out.end(), '|', ' ');
  return out;
}

OperandsRow operands_of(const CommandRow& command) {
  std::string_view usage = command.usage.substr(0, command.usage.find('\n'));
  if (usage.find("NAME -- COMMAND") != usage.npos) return {Operands::name_and_command, {}};
  if (usage.find("NAME...") != usage.npos) return {Operands::names, {}};
  if (usage.find("NAME") != usage.npos) return {Operands::name, {}};
  const std::string_view last = usage.substr(usage.rfind(' ') + 1);
  return {Operands::words, last == "[options]" ? std::string_view() : last};
}

// `text` with a backslash before each of the characters.
std::string escaped(std::string_view text, std::string_view characters) {
  std::string out;
  for (char c : text) {
    if (characters.find(c) != characters.npos) out += '\\';
    out += c;
  }
  return out;
}

std::string row_text(const OptionRow& row) {
  std::string text = "      '";
  for (const std::string& spelling : spellings(row)) {
    if (text.back() != '\'') text += ',';
    text += spelling;
  }
  const std::string_view metavar = row.takes_next_word() ? row.metavar : std::string_view();
  return text + " " + std::string(metavar) + "'\n";
}

// nullptr: before the command word, where only the options that every command has are offered.
std::string rows_of(const CommandRow* command) {
  std::string out = "    " + (command == nullptr ? "*" : std::string(command->name));
  out += ") rows=(\n";
  for (const OptionRow& row : options()) {
    bool wanted =
        command == nullptr ? row.section == Section::general : row.applies_to(command->id);
    if (wanted) out += row_text(row);
  }
  return out + "    ) ;;\n";
}

std::string operands_text(const CommandRow& command) {
  OperandsRow row = operands_of(command);
  switch (row.kind) {
    case Operands::name:
      return "NAME";
    case Operands::names:
      return "NAME...";
    case Operands::name_and_command:
      return "'NAME -- COMMAND'";
    case Operands::words:
      return "'" + std::string(row.words) + "'";
  }
  return {};
}

std::string command_names() {
  std::string out;
  for (const CommandRow& command : commands()) {
    if (!out.empty()) out += ' ';
    out += command.name;
  }
  return out;
}

std::string bash_completion() {
  std::string rows;
  std::string operands;
  for (const CommandRow& command : commands()) {
    rows += rows_of(&command);
    operands +=
        "    " + std::string(command.name) + ") operands=" + operands_text(command) + " ;;\n";
  }
  rows += rows_of(nullptr);
  return fill_template(kBashTemplate,
                       {{"commands", command_names()}, {"options", rows}, {"operands", operands}})
      .value();
}

std::string quoted(std::string_view text) {
  return "'" + escaped(text, "\\'") + "'";
}

// The options that take a value, as `run --wait` and, since letters may be joined, `run -*w`.
struct Patterns {
  std::string names;
  std::string letters;
};

void add_pattern(std::string& list, const std::string& command, const std::string& option) {
  if (!list.empty()) list += ' ';
  list += "'" + command + " " + option + "'";
}

void add_patterns(Patterns& out, const std::string& command, const OptionRow& row) {
  if (!row.name.empty()) add_pattern(out.names, command, "--" + std::string(row.name));
  if (row.letter != '\0') add_pattern(out.letters, command, std::string("-*") + row.letter);
}

Patterns value_patterns() {
  Patterns out;
  for (const OptionRow& row : options()) {
    if (!row.takes_next_word()) continue;
    if (row.section == Section::general) add_patterns(out, "*", row);
    for (const CommandRow& command : commands()) {
      bool own = row.section == Section::command && row.applies_to(command.id);
      if (own) add_patterns(out, std::string(command.name), row);
    }
  }
  return out;
}

std::string value_text(const OptionRow& row) {
  switch (value_kind(row)) {
    case ValueKind::none:
      return {};
    case ValueKind::text:
      return " -x";
    case ValueKind::file:
      return " -r -F";
    case ValueKind::folder:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::words:
      return " -x -a '" + spaced(row.metavar) + "'";
  }
  return {};
}

std::string option_line(const OptionRow& row) {
  std::string out = "complete -c rlock";
  if (row.section == Section::command) {
    out += " -n '__rlock_in";
    for (const CommandRow& command : commands()) {
      if (row.applies_to(command.id)) out += " " + std::string(command.name);
    }
    out += "'";
  }
  if (row.letter != '\0') out += std::string(" -s ") + row.letter;
  if (!row.name.empty()) out += " -l " + std::string(row.name);
  return out + value_text(row) + " -d " + quoted(row.help) + "\n";
}

std::string operand_line(std::string_view condition, std::string_view candidates) {
  return "complete -c rlock -n " + quoted(condition) + " -a " + quoted(candidates) + "\n";
}

std::string operand_lines() {
  std::string out;
  std::string one_name = "__rlock_at_operand";
  for (const CommandRow& command : commands()) {
    OperandsRow row = operands_of(command);
    const std::string name(command.name);
    if (row.kind == Operands::names) {
      out += operand_line("__rlock_in " + name, "(__rlock_names)");
    } else if (row.kind == Operands::words && !row.words.empty()) {
      out += operand_line("__rlock_at_operand " + name, spaced(row.words));
    } else {
      one_name += " " + name;
    }
  }
  return out + operand_line(one_name, "(__rlock_names)") +
         operand_line("__rlock_after_name", "--") +
         operand_line("__rlock_after_dashes", "(__rlock_rest)");
}

std::string command_line(const CommandRow& command) {
  return "complete -c rlock -n __rlock_at_command -a " + std::string(command.name) + " -d " +
         quoted(command.summary) + "\n";
}

std::string fish_completion() {
  Patterns patterns = value_patterns();
  Holes holes{{"names with values", patterns.names},
              {"letters with values", patterns.letters},
              {"operands", operand_lines()}};
  for (const CommandRow& command : commands()) holes["commands"] += command_line(command);
  for (const OptionRow& row : options()) holes["options"] += option_line(row);
  return fill_template(kFishTemplate, holes).value();
}

// For a spec of _arguments within single quotes.
std::string description(std::string_view text) {
  std::string out;
  for (char c : escaped(text, "\\[]:")) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out;
}

std::string value_spec(const OptionRow& row) {
  const std::string metavar(row.metavar);
  if (row.value_optional) return "::" + metavar + ": ";
  switch (value_kind(row)) {
    case ValueKind::none:
      return {};
    case ValueKind::text:
      return ":" + metavar + ": ";
    case ValueKind::file:
      return ":" + metavar + ":_files";
    case ValueKind::folder:
      return ":" + metavar + ":_files -/";
    case ValueKind::words:
      return ":which:(" + spaced(metavar) + ")";
  }
  return {};
}

// `-w+`: the value may be in the same word; `--wait=`: also after an equals sign; `--supersede=-`:
// there alone.
std::string names_spec(const OptionRow& row) {
  const std::string letter = std::string("-") + row.letter + (row.takes_value() ? "+" : "");
  const char* joint = row.value_optional ? "=-" : row.takes_value() ? "=" : "";
  const std::string name = "--" + std::string(row.name) + joint;
  const bool repeatable = row.id == Opt::url;
  if (row.letter == '\0') return (repeatable ? "'*" : "'") + name;
  if (row.name.empty()) return (repeatable ? "'*" : "'") + letter;
  const std::string before =
      repeatable ? "*" : std::string("(-") + row.letter + " --" + std::string(row.name) + ")";
  return "'" + before + "'{" + letter + "," + name + "}'";
}

std::string spec(const OptionRow& row, std::string_view help) {
  return names_spec(row) + "[" + description(help) + "]" + value_spec(row) + "'\n";
}

std::string operands_spec(const CommandRow& command) {
  OperandsRow row = operands_of(command);
  switch (row.kind) {
    case Operands::name:
      return "'1: :_rlock_names'";
    case Operands::names:
      return "'*: :_rlock_names'";
    case Operands::name_and_command:
      return "'1: :_rlock_names' '2: :(--)'";
    case Operands::words:
      return row.words.empty() ? "" : "'1:which:(" + spaced(row.words) + ")'";
  }
  return {};
}

std::string options_of(const CommandRow& command) {
  std::string out = "    " + std::string(command.name) + ")\n      options=(\n";
  for (const OptionRow& row : options()) {
    if (row.section != Section::command || !row.applies_to(command.id)) continue;
    out += "        " + spec(row, text_for(row, command.id).help);
  }
  return out + "      )\n      operands=(" + operands_spec(command) + ")\n      ;;\n";
}

std::string zsh_completion() {
  Holes holes;
  for (const CommandRow& command : commands()) {
    holes["commands"] +=
        "    '" + std::string(command.name) + ":" + description(command.summary) + "'\n";
    holes["options"] += options_of(command);
  }
  for (const OptionRow& row : options()) {
    if (row.section == Section::general) holes["general options"] += "    " + spec(row, row.help);
  }
  return fill_template(kZshTemplate, holes).value();
}

}  // namespace

std::optional<Shell> find_shell(std::string_view name) {
  if (name == "bash") return Shell::bash;
  if (name == "zsh") return Shell::zsh;
  if (name == "fish") return Shell::fish;
  return std::nullopt;
}

std::string completion_script(Shell shell) {
  switch (shell) {
    case Shell::bash:
      return bash_completion();
    case Shell::zsh:
      return zsh_completion();
    case Shell::fish:
      return fish_completion();
  }
  return {};
}

}  // namespace rlock::cli
