#include "cli/options/completion/completion.hpp"

#include <algorithm>

namespace rlock::cli {

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

ValueKind value_kind(const OptionRow& row) {
  if (!row.takes_next_word()) return ValueKind::none;
  if (row.metavar.find('|') != row.metavar.npos) return ValueKind::words;
  if (row.metavar == "FILE") return ValueKind::file;
  return row.metavar == "DIR" ? ValueKind::folder : ValueKind::text;
}

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

std::string escaped(std::string_view text, std::string_view characters) {
  std::string out;
  for (char c : text) {
    if (characters.find(c) != characters.npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace rlock::cli
