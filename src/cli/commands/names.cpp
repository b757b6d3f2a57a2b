// The names that every later version keeps, for their list and for the test that compares it.
#include <algorithm>
#include <cctype>

#include "cli/commands/commands.hpp"
#include "cli/options/exit_codes.hpp"
#include "cli/options/options.hpp"
#include "cli/settings/resolve.hpp"
#include "redis/net/url.hpp"
#include "redis/store/versions.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using Lines = std::string;

void add(Lines& out, std::string_view kind, std::string_view name, std::string_view since = {}) {
  out += util::format("{}\t{}{}{}\n", kind, name, since.empty() ? "" : "\t", since);
}

// The words that the metavar lists, without examples of numbers; empty for a metavar like DUR.
std::vector<std::string_view> words_of(const OptionRow& row) {
  std::vector<std::string_view> words;
  if (row.kind() != ValueKind::word && !row.examples) return words;
  for (std::string_view rest = row.metavar; !rest.empty();) {
    const std::string_view word = util::take_until(rest, '|');
    if (std::isdigit(static_cast<unsigned char>(word.front())) == 0) words.push_back(word);
  }
  return words;
}

// Adds a default that is a value, or several separated by commas, but not an explanation.
void add_defaults(Lines& out, std::string_view option, std::string_view fallback) {
  std::vector<std::string_view> values = util::split(fallback, ',');
  for (std::string_view& value : values) {
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (value.empty() || value.find(' ') != value.npos) return;
  }
  for (std::string_view value : values) {
    add(out, "default", util::format("{} {}", option, value));
  }
}

void add_option(Lines& out, const CommandRow& command, const OptionRow& row) {
  for (const std::string& spelling : spellings(row)) {
    const std::string option = util::format("{} {}", command.name, spelling);
    add(out, "option", option, row.since);
    if (spelling != spellings(row).back()) continue;
    for (std::string_view word : words_of(row)) {
      add(out, "option-word", util::format("{} {}", option, word));
    }
    add_defaults(out, option, text_for(row, command.id).fallback);
  }
}

}  // namespace

std::string public_names() {
  Lines out;
  for (const CommandRow& command : commands()) {
    add(out, "command", command.name);
    for (const OptionRow& row : options()) {
      if (row.applies_to(command.id)) add_option(out, command, row);
    }
  }
  // The parser knows these two without a row.
  for (std::string_view word : {"help", "version"}) add(out, "command", word);
  for (const ExitCodeRow& row : exit_codes()) add(out, "exit-code", util::format("{}", row.code));
  for (std::string_view variable : command_variables()) add(out, "variable-of-command", variable);
  add(out, "variable", kUnstableVariable);
  for (const OptionRow& row : options()) {
    for (std::string_view variable : variables_of(row)) add(out, "variable", variable);
    if (!row.in_file) continue;
    add(out, "setting",
        util::format("{}{}", row.section == Section::general ? "" : "run.", row.name));
  }
  for (const std::string& metric : metric_names()) add(out, "metric", metric);
  for (std::string_view scheme : redis::url_schemes()) {
    add(out, "url", util::format("{}://", scheme));
  }
  add(out, "url", "local:");
  add(out, "stored-form", util::format("{}", redis::stored_form()));
  return out;
}

}  // namespace rlock::cli
