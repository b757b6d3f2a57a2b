#include "cli/options/completion/completion.hpp"
#include "cli/options/template.hpp"

namespace rlock::cli {
namespace {

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

}  // namespace

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

}  // namespace rlock::cli
