#include "cli/options/help.hpp"

#include <algorithm>

namespace rlock::cli {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kHelpColumn = 29;

// Appends the words of `text`, wrapped; lines but the first are indented by `column`.
void wrap(std::string& out, std::string_view text, size_t column) {
  size_t used = out.size() - (out.rfind('\n') + 1);
  bool first = true;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!first && used + 1 + word.size() > kWidth) {
      out.append("\n").append(column, ' ');
      used = column;
    } else if (!first) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
    first = false;
  }
  out += '\n';
}

template <class Each>
void for_lines(std::string_view text, Each each) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    each(line);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
}

std::string names_of(const OptionRow& row) {
  std::string names = row.letter == '\0' ? "    " : std::string("-") + row.letter;
  if (row.letter != '\0' && !row.name.empty()) names += ", ";
  if (!row.name.empty()) names.append("--").append(row.name);
  return names + value_shown(row);
}

void add_option(std::string& out, const OptionRow& row, const OptionText& own) {
  std::string names = "  " + names_of(row);
  out += names;
  if (names.size() + 2 > kHelpColumn) {
    out.append("\n").append(kHelpColumn, ' ');
  } else {
    out += std::string(kHelpColumn - names.size(), ' ');
  }
  std::string text(own.help);
  if (!own.fallback.empty()) text += " (default: " + std::string(own.fallback) + ")";
  if (!row.environment.empty()) text += " [env: " + std::string(row.environment) + "]";
  wrap(out, text, kHelpColumn);
}

void add_options(std::string& out, CommandId command, Section section, HelpLength length) {
  for (const OptionRow& row : options()) {
    if (row.section != section || !row.applies_to(command)) continue;
    if (length == HelpLength::brief && !row.common) continue;
    add_option(out, row, text_for(row, command));
  }
}

constexpr std::string_view kGeneralTitle =
    "\nConnection and general options (before or after the command word):\n";

}  // namespace

std::string general_help(HelpLength length) {
  std::string out =
      "rlock holds a lock in Redis or Valkey while a command runs.\n\n"
      "Usage: rlock [connection options] COMMAND [options] ...\n\n"
      "Examples:\n"
      "  export RLOCK_URL=redis://db1\n"
      "  rlock run nightly -- /usr/local/bin/backup\n"
      "  rlock status\n\n"
      "Commands:\n";
  for (const CommandRow& row : commands()) {
    std::string line = "  " + std::string(row.name);
    line.resize(18, ' ');
    out += line + std::string(row.summary) + "\n";
  }
  if (length == HelpLength::brief) {
    return out +
           "\nrlock COMMAND -h shows the common options of a command, --help all of them.\n"
           "rlock --help lists the connection options. See rlock(1), and rlock-recipes(7).\n";
  }
  out += kGeneralTitle;
  for (const OptionRow& row : options()) {
    if (row.section == Section::general) add_option(out, row, {row.help, row.fallback});
  }
  return out;
}

std::string command_help(CommandId command, HelpLength length) {
  const CommandRow& row = row_of(command);
  const bool brief = length == HelpLength::brief;
  std::string out;
  for_lines(row.usage, [&](std::string_view line) {
    out += (out.empty() ? "Usage: rlock " : "       rlock ") + std::string(line) + "\n";
  });
  out += "\nExamples:\n";
  for_lines(row.examples, [&](std::string_view line) { out += "  " + std::string(line) + "\n"; });
  for_lines(brief ? std::string_view() : row.about, [&](std::string_view paragraph) {
    out += "\n";
    wrap(out, paragraph, 0);
  });
  std::string own;
  add_options(own, command, Section::command, length);
  if (!own.empty()) out += "\nOptions:\n" + own;
  out += brief ? "\n" : kGeneralTitle;
  add_options(out, command, Section::general, length);
  if (brief) out += "\nAll options: rlock " + std::string(row.name) + " --help\n";
  return out;
}

}  // namespace rlock::cli
