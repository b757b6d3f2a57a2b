#include <algorithm>

#include "cli/options/completion/completion.hpp"
#include "redis/store/acl.hpp"

namespace rlock::cli {
namespace {

constexpr std::string_view kGeneral = "@general options@";
constexpr std::string_view kAccess = "@least ACL rule@";
constexpr std::string_view kOfCommand = "@options ";

// Text of the tables as roff: a hyphen is a minus sign, and no line begins as a request.
std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string heading(const OptionRow& row) {
  std::string out;
  for (const std::string& spelling : spellings(row)) {
    if (!out.empty()) out += ", ";
    out += "\\fB" + roff(spelling) + "\\fR";
  }
  if (row.takes_value()) out += " \\fI" + roff(row.metavar) + "\\fR";
  return out;
}

std::string item(const OptionRow& row, const OptionText& text) {
  std::string out = ".TP\n" + heading(row) + "\n" + roff(text.help);
  if (!text.fallback.empty()) out += " (default: " + roff(text.fallback) + ")";
  out += ".\n";
  if (!row.environment.empty()) out += "Environment: " + roff(row.environment) + ".\n";
  return out;
}

std::string general_items() {
  std::string out;
  for (const OptionRow& row : options()) {
    if (row.section == Section::general) out += item(row, {row.help, row.fallback});
  }
  return out;
}

std::string items_of(CommandId command) {
  std::string out;
  for (const OptionRow& row : options()) {
    bool own = row.section == Section::command && row.applies_to(command);
    if (own) out += item(row, text_for(row, command));
  }
  return out;
}

// What stands in the place of a line of the page: mostly the line itself.
std::optional<std::string> filled(std::string_view line) {
  if (line == kGeneral) return general_items();
  if (line == kAccess) return roff(redis::least_acl("rlock:")) + "\n";
  if (!line.starts_with(kOfCommand) || !line.ends_with('@')) return std::string(line) + "\n";
  line.remove_prefix(kOfCommand.size());
  line.remove_suffix(1);
  const CommandRow* command = find_command(line);
  if (command == nullptr) return std::nullopt;
  return items_of(command->id);
}

}  // namespace

std::optional<std::string> manual_page(std::string_view source) {
  std::string out;
  while (!source.empty()) {
    std::string_view line = source.substr(0, source.find('\n'));
    auto text = filled(line);
    if (!text) return std::nullopt;
    out += *text;
    source.remove_prefix(std::min(source.size(), line.size() + 1));
  }
  return out;
}

}  // namespace rlock::cli
