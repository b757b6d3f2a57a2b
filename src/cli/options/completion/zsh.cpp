#include "cli/options/completion/completion.hpp"

namespace rlock::cli {
namespace {

constexpr std::string_view kHead = R"sh(#compdef rlock
# Completion of rlock(1) for zsh, as `rlock completion zsh` prints it.

# ---- from the table of options ----

)sh";

constexpr std::string_view kCode = R"sh(
# ---- how it is used ----

# The words are data for rlock, unquoted but not expanded: a TAB must run nothing that was typed.
_rlock_names() {
  local expl
  local -a names
  names=(${(f)"$(rlock __complete "${(@Q)typed}" 2>/dev/null)"})
  _wanted names expl 'lock name' compadd -a - names
}

_rlock() {
  local curcontext=$curcontext state line ret=1 command dashes
  local -A opt_args
  local -a general options operands typed
  typed=("${(@)words[2,CURRENT - 1]}")
  _rlock_general_options
  _arguments -C -s $general '(-): :_rlock_commands' '(-)*:: :->operands' && ret=0
  [[ $state == operands ]] || return ret

  command=${(Q)words[1]}
  dashes=${words[(ie)--]}
  if (( dashes >= CURRENT )); then
    _rlock_options_of $command
    _arguments -s $general $options $operands
  elif [[ $command == run ]]; then # what follows is completed as if it stood alone
    words=("${(@)words[dashes + 1,-1]}")
    (( CURRENT -= dashes ))
    _normal
  else
    _rlock_names
  fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then # from fpath, at the first TAB
  _rlock "$@"
else
  compdef _rlock rlock
fi
)sh";

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

// `-w+`: the value may stand in the same word; `--wait=`: behind an equals sign too.
std::string names_spec(const OptionRow& row) {
  const std::string letter = std::string("-") + row.letter + (row.takes_value() ? "+" : "");
  const std::string name = "--" + std::string(row.name) + (row.takes_value() ? "=" : "");
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
      return "'1:which:(" + spaced(row.words) + ")'";
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
  std::string out(kHead);
  out += "_rlock_commands() {\n  local -a commands\n  commands=(\n";
  for (const CommandRow& command : commands()) {
    out += "    '" + std::string(command.name) + ":" + description(command.summary) + "'\n";
  }
  out += "  )\n  _describe command commands\n}\n\n_rlock_general_options() {\n  general=(\n";
  for (const OptionRow& row : options()) {
    if (row.section == Section::general) out += "    " + spec(row, row.help);
  }
  out += "  )\n}\n\n_rlock_options_of() {\n  case $1 in\n";
  for (const CommandRow& command : commands()) out += options_of(command);
  return out.append("  esac\n}\n").append(kCode);
}

}  // namespace rlock::cli
