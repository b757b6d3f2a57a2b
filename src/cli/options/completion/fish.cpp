#include "cli/options/completion/completion.hpp"

namespace rlock::cli {
namespace {

constexpr std::string_view kHead =
    R"fish(# Completion of rlock(1) for fish, as `rlock completion fish` prints it.

# ---- how it is used ----

# Prints the command word and the operands that stand before the cursor, one a line; fails behind `--`.
function __rlock_words
    set -l command
    set -l value no
    set -l tokens (commandline -opc)
    set -e tokens[1]
    for word in $tokens
        if test $value = yes
            set value no
        else if test "$word" = --
            return 1
        else if string match -qr -- '^-.' $word
            __rlock_takes_value "$command" $word; and set value yes
        else
            test -n "$command"; or set command $word
            echo $word
        end
    end
    return 0
end

function __rlock_at_command
    set -l words (__rlock_words); and test (count $words) -eq 0
end

# One of these commands, not behind `--`.
function __rlock_in
    set -l words (__rlock_words); and contains -- "$words[1]" $argv
end

# One of these commands, without an operand yet.
function __rlock_at_operand
    set -l words (__rlock_words); and test (count $words) -eq 1; and contains -- $words[1] $argv
end

function __rlock_after_name
    set -l words (__rlock_words); and test (count $words) -eq 2; and test $words[1] = run
end

function __rlock_behind_dashes
    not __rlock_words >/dev/null
end

function __rlock_names
    set -l tokens (commandline -opc)
    set -e tokens[1]
    rlock __complete $tokens 2>/dev/null
end

# Behind `--`: a command is completed as if it stood alone; for other commands than run these are names.
function __rlock_rest
    set -l words (__rlock_words)
    if test "$words[1]" != run
        __rlock_names
        return
    end
    set -l tokens (commandline -opc)
    set -l dashes (contains -i -- -- $tokens)
    set -e tokens[1..$dashes]
    complete -C (string join ' ' -- (string escape -- $tokens) (commandline -ct))
end

# ---- from the table of options ----

)fish";

std::string quoted(std::string_view text) {
  return "'" + escaped(text, "\\'") + "'";
}

// The options that take a value, as `run --wait` and, since letters may be joined, `run -*w`.
struct Patterns {
  std::string words;
  std::string letters;
};

Patterns value_patterns() {
  Patterns out;
  auto add = [&](const std::string& command, const OptionRow& row) {
    if (!row.name.empty()) out.words += " '" + command + " --" + std::string(row.name) + "'";
    if (row.letter != '\0') out.letters += " '" + command + " -*" + row.letter + "'";
  };
  for (const OptionRow& row : options()) {
    if (!row.takes_value()) continue;
    if (row.section == Section::general) add("*", row);
    for (const CommandRow& command : commands()) {
      bool own = row.section == Section::command && row.applies_to(command.id);
      if (own) add(std::string(command.name), row);
    }
  }
  return out;
}

std::string takes_value() {
  Patterns patterns = value_patterns();
  return "# Whether the word behind option word $argv[2] of command $argv[1] is its value.\n"
         "function __rlock_takes_value\n"
         "    switch \"$argv\"\n"
         "        case '* --*=*'\n"
         "            return 1\n"
         "        case" +
         patterns.words +
         "\n"
         "            return 0\n"
         "        case '* --*'\n"
         "            return 1\n"
         "        case" +
         patterns.letters +
         "\n"
         "            return 0\n"
         "    end\n"
         "    return 1\n"
         "end\n\n";
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
    } else if (row.kind == Operands::words) {
      out += operand_line("__rlock_at_operand " + name, spaced(row.words));
    } else {
      one_name += " " + name;
    }
  }
  return out + operand_line(one_name, "(__rlock_names)") +
         operand_line("__rlock_after_name", "--") +
         operand_line("__rlock_behind_dashes", "(__rlock_rest)");
}

}  // namespace

std::string fish_completion() {
  std::string out(kHead);
  out += takes_value() + "complete -c rlock -f\n";
  for (const CommandRow& command : commands()) {
    out += "complete -c rlock -n __rlock_at_command -a " + std::string(command.name) + " -d " +
           quoted(command.summary) + "\n";
  }
  for (const OptionRow& row : options()) out += option_line(row);
  return out + operand_lines();
}

}  // namespace rlock::cli
