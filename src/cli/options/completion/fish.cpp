#include "cli/options/completion/completion.hpp"
#include "cli/options/template.hpp"

namespace rlock::cli {
namespace {

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

}  // namespace

std::string fish_completion() {
  Patterns patterns = value_patterns();
  Holes holes{{"names with values", patterns.names},
              {"letters with values", patterns.letters},
              {"operands", operand_lines()}};
  for (const CommandRow& command : commands()) holes["commands"] += command_line(command);
  for (const OptionRow& row : options()) holes["options"] += option_line(row);
  return fill_template(kFishTemplate, holes).value();
}

}  // namespace rlock::cli
