#include "cli/options/man.hpp"

#include <cctype>

#include "cli/options/options.hpp"
#include "cli/options/template.hpp"

namespace rlock::cli {
namespace {

bool is_option_character(char c) {
  return c == '-' || (c >= 'a' && c <= 'z');
}

// A hyphen in roff is \-, a minus sign, so that options can be copied from the page.
std::string escaped(std::string_view text) {
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
  return out;
}

// The option at the front of text, such as --wait; empty when there is none.
std::string_view option_at(std::string_view text) {
  if (!text.starts_with("--") || text.size() < 3 || text[2] == '-' || text[2] == ' ') return {};
  size_t end = 2;
  while (end < text.size() && is_option_character(text[end])) ++end;
  return text.substr(0, end);
}

// Text of the table as roff: options in bold, each sentence on a line of its own. No line of the
// table begins with a dot or a quote, which roff would read as a request.
std::string roff(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::string_view option = option_at(text);
    if (!option.empty()) {
      out += "\\fB" + escaped(option) + "\\fR";
      text.remove_prefix(option.size());
      continue;
    }
    bool sentence_ends = text.size() > 2 && text.starts_with(". ") &&
                         (std::isupper(static_cast<unsigned char>(text[2])) || text[2] == '-');
    out += sentence_ends ? ".\n" : escaped(text.substr(0, 1));
    text.remove_prefix(sentence_ends ? 2 : 1);
  }
  return out;
}

std::string heading(const OptionRow& row) {
  std::string out;
  for (const std::string& spelling : spellings(row)) {
    if (!out.empty()) out += ", ";
    out += "\\fB" + escaped(spelling) + "\\fR";
  }
  if (!row.takes_value()) return out;
  const std::string metavar = "\\fI" + escaped(row.metavar) + "\\fR";
  return out + (row.value_optional ? "[=" + metavar + "]" : " " + metavar);
}

std::string as_sentence(std::string_view phrase) {
  std::string out(phrase);
  out.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(out.front())));
  return out;
}

std::string item(const OptionRow& row, const OptionText& text) {
  std::string out = ".TP\n" + heading(row) + "\n" + roff(as_sentence(text.help));
  if (!text.fallback.empty()) out += " (default: " + roff(text.fallback) + ")";
  out += ".\n";
  if (text.same_as != nullptr) {
    out += "See \\fB" + escaped(text.same_as->name) + "\\fR above.\n";
  } else if (!text.manual.empty()) {
    out += roff(text.manual) + "\n";
  }
  if (!row.environment.empty()) out += "Environment: " + escaped(row.environment) + ".\n";
  return out;
}

std::string general_items() {
  std::string out;
  for (const OptionRow& row : options()) {
    if (row.section == Section::general) out += item(row, {row.help, row.fallback, row.manual});
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

}  // namespace

std::optional<std::string> manual_page(std::string_view source, std::string_view acl_rule) {
  Holes holes{{"general options", general_items()}, {"least ACL rule", escaped(acl_rule)}};
  for (const CommandRow& command : commands()) {
    holes["options " + std::string(command.name)] = items_of(command.id);
  }
  return fill_template(source, holes);
}

}  // namespace rlock::cli
