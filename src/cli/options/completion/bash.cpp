#include "cli/options/completion/completion.hpp"
#include "cli/options/template.hpp"

namespace rlock::cli {
namespace {

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

}  // namespace

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

}  // namespace rlock::cli
