#include "cli/options/completion/completion.hpp"

namespace rlock::cli {
namespace {

constexpr std::string_view kHead =
    R"sh(# Completion of rlock(1) for bash, as `rlock completion bash` prints it.
# shellcheck shell=bash disable=SC2034 # variables of the caller are set

# ---- from the table of options ----

)sh";

constexpr std::string_view kCode = R"sh(
# ---- how it is used ----

# metavar: what option $2 of command $1 takes; empty for nothing.
_rlock_find() {
  local row
  local -a rows
  metavar=''
  _rlock_rows "$1"
  for row in "${rows[@]}"; do
    [[ ",${row%% *}," == *",$2,"* ]] || continue
    metavar=${row#* }
    return
  done
}

# metavar: what the word after option word $2 of command $1 is; empty when it is no value.
_rlock_next() {
  local i
  metavar=''
  case $2 in
    --*=*) ;;
    --*) _rlock_find "$1" "$2" ;;
    *)
      for ((i = 1; i < ${#2}; i++)); do
        _rlock_find "$1" "-${2:i:1}"
        [[ -z $metavar ]] || break
      done
      ((i + 1 >= ${#2})) || metavar='' # the value stands in the word itself
      ;;
  esac
}

# words: the words of $1 as a shell reads them, the last one as far as it is typed. typed: that one as it
# stands there; quote: the quote that is open. Nothing is expanded: a TAB must run nothing.
_rlock_split() {
  local text=$1 word='' char i
  words=() typed='' quote=''
  for ((i = 0; i < ${#text}; i++)); do
    char=${text:i:1}
    if [[ -z $quote && $char == [[:space:]] ]]; then
      [[ -z $typed ]] || words+=("$word")
      word='' typed=''
      continue
    fi
    typed+=$char
    if [[ -n $quote && $char == "$quote" ]]; then
      quote=''
    elif [[ -z $quote && $char == [\'\"] ]]; then
      quote=$char
    elif [[ $char == \\ && $quote != \' ]]; then
      ((++i))
      typed+=${text:i:1}
      word+=${text:i:1}
    else
      word+=$char
    fi
  done
  words+=("$word")
}

# quoted: $1 as it stands within the quote $2, empty for none.
_rlock_quote() {
  quoted=$1
  case $2 in
    \') quoted=${quoted//\'/\'\\\'\'} ;;
    \")
      quoted=${quoted//\\/\\\\}
      quoted=${quoted//\"/\\\"}
      quoted=${quoted//\$/\\\$}
      quoted=${quoted//\`/\\\`}
      ;;
    *) [[ -z $1 ]] || printf -v quoted %q "$1" ;;
  esac
}

# COMPREPLY: those of $2… that begin with the word being typed, quoted as that one is. readline replaces only
# $1, the end of the word behind the last of COMP_WORDBREAKS, so the front is left out.
_rlock_offer() {
  local front=${typed%"$1"} current=${words[${#words[@]} - 1]} open=$quote candidate quoted
  local -a words
  local typed quote
  _rlock_split "$front"
  front=${words[${#words[@]} - 1]}
  shift
  for candidate; do
    [[ $candidate == "$current"* ]] || continue
    _rlock_quote "${candidate#"$front"}" "$open"
    COMPREPLY+=("$quoted")
  done
}

_rlock_offer_names() {
  local -a names
  mapfile -t names < <(rlock __complete "${words[@]:1:${#words[@]}-2}" 2>/dev/null)
  _rlock_offer "$1" "${names[@]}"
}

# The value of an option: $2 is its metavar, $3 what stands before the value in the same word.
_rlock_offer_values() {
  local -a values
  case $2 in
    FILE) compopt -o default ;;
    DIR) compopt -o dirnames ;;
    *'|'*)
      IFS='|' read -r -a values <<<"$2"
      _rlock_offer "$1" "${values[@]/#/$3}"
      ;;
  esac
}

_rlock_offer_options() {
  local row
  local -a rows options
  _rlock_rows "$2"
  for row in "${rows[@]}"; do
    row=${row%% *}
    options+=("${row%,*}" "${row#*,}")
  done
  _rlock_offer "$1" "${options[@]}"
}

# What command $2 takes, $3 operands being there already.
_rlock_offer_operands() {
  local operands
  local -a values
  _rlock_operands "$2"
  case $operands,$3 in
    *'|'*,0)
      IFS='|' read -r -a values <<<"$operands"
      _rlock_offer "$1" "${values[@]}"
      ;;
    NAME...,* | NAME*,0) _rlock_offer_names "$1" ;;
    'NAME -- COMMAND,1') _rlock_offer "$1" -- ;;
  esac
}

# What follows `--` is completed as if it stood alone.
_rlock_offer_command() {
  local i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} != -- ]] || break
  done
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset $((i + 1))
  elif declare -F _command_offset >/dev/null; then
    _command_offset $((i + 1))
  elif ((i + 1 == COMP_CWORD)) && [[ $1 != */* ]]; then
    mapfile -t COMPREPLY < <(compgen -c -- "$1" | sort -u)
  else
    compopt -o default
  fi
}

# Reads the words before the last one. command, operands: the command word and the number of operands;
# metavar: of an option that the last word is the value of; dashes: there was a `--`.
_rlock_read_words() {
  local last=$((${#words[@]} - 1)) word i
  command='' operands=0 metavar='' dashes=''
  for ((i = 1; i < last; i++)); do
    word=${words[i]}
    if [[ $word == -- ]]; then
      dashes=yes
      return
    elif [[ $word == -?* ]]; then
      _rlock_next "$command" "$word"
      [[ -z $metavar ]] || ((++i))
    elif [[ -z $command ]]; then
      command=$word
    else
      ((++operands))
    fi
  done
  ((i > last)) || metavar=''
}

_rlock() {
  local -a words
  local typed quote metavar command operands dashes
  COMPREPLY=()
  _rlock_split "${COMP_LINE:0:COMP_POINT}"
  _rlock_read_words
  local word=${words[${#words[@]} - 1]}
  if [[ -n $dashes && $command == run ]]; then
    _rlock_offer_command "$2"
  elif [[ -n $metavar ]]; then
    _rlock_offer_values "$2" "$metavar" ''
  elif [[ -z $dashes && $word == --*=* ]]; then
    _rlock_find "$command" "${word%%=*}"
    _rlock_offer_values "$2" "$metavar" "${word%%=*}="
  elif [[ -z $dashes && $word == -* ]]; then
    _rlock_offer_options "$2" "$command"
  elif [[ -z $command ]]; then
    _rlock_offer "$2" "${_rlock_commands[@]}"
  else
    _rlock_offer_operands "$2" "$command" "$operands"
  fi
}

complete -F _rlock rlock
)sh";

std::string row_text(const OptionRow& row) {
  std::string text = "      '";
  for (const std::string& spelling : spellings(row)) {
    if (text.back() != '\'') text += ',';
    text += spelling;
  }
  return text + " " + std::string(row.metavar) + "'\n";
}

// Before the command word (`nullptr`): those that every command has.
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

}  // namespace

std::string bash_completion() {
  std::string out(kHead);
  out += "_rlock_commands=(";
  for (const CommandRow& command : commands()) {
    if (out.back() != '(') out += ' ';
    out += command.name;
  }
  out +=
      ")\n\n# rows: each option of command $1 with what it takes.\n"
      "_rlock_rows() {\n  case $1 in\n";
  for (const CommandRow& command : commands()) out += rows_of(&command);
  out += rows_of(nullptr);
  out +=
      "  esac\n}\n\n# operands: what command $1 takes beside its options.\n"
      "_rlock_operands() {\n  case $1 in\n";
  for (const CommandRow& command : commands()) {
    out += "    " + std::string(command.name) + ") operands=" + operands_text(command) + " ;;\n";
  }
  out += "    *) operands='' ;;\n  esac\n}\n";
  return out.append(kCode);
}

}  // namespace rlock::cli
