#include "cli/options/options.hpp"

#include "cli/options/table_commands.hpp"
#include "cli/options/table_options.hpp"

namespace rlock::cli {
namespace {

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(kOptions); ++i) {
    if (static_cast<size_t>(kOptions[i].id) != i) return false;
  }
  for (size_t i = 0; i < std::size(kCommands); ++i) {
    if (static_cast<size_t>(kCommands[i].id) != i) return false;
  }
  return true;
}
static_assert(std::size(kOptions) == kOptCount);
static_assert(in_order(), "row_of() uses the enumerator as the index");

const PerCommandText* own_text(Opt id, CommandId command) {
  for (const PerCommandText& own : kPerCommandTexts) {
    if (own.of.id == id && (own.of.commands & bit(command)) != 0) return &own;
  }
  return nullptr;
}

}  // namespace

std::span<const CommandRow> commands() {
  return kCommands;
}
const CommandRow& row_of(CommandId id) {
  return kCommands[static_cast<size_t>(id)];
}

const CommandRow* find_command(std::string_view name) {
  for (const CommandRow& row : kCommands) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::span<const OptionRow> options() {
  return kOptions;
}
const OptionRow& row_of(Opt id) {
  return kOptions[static_cast<size_t>(id)];
}

OptionText text_for(const OptionRow& row, CommandId command) {
  const PerCommandText* own = own_text(row.id, command);
  OptionText text = own != nullptr ? OptionText{own->help, own->of.fallback, own->manual}
                                   : OptionText{row.help, row.fallback, row.manual};
  for (const CommandRow& earlier : kCommands) {
    if (earlier.id == command) break;
    if (!row.applies_to(earlier.id) || own_text(row.id, earlier.id) != own) continue;
    text.same_as = &earlier;
    break;
  }
  return text;
}

const OptionRow* find_option(std::string_view name) {
  for (const OptionRow& row : kOptions) {
    if (!row.name.empty() && row.name == name) return &row;
  }
  return nullptr;
}

const OptionRow* find_option(char letter) {
  for (const OptionRow& row : kOptions) {
    if (row.letter != '\0' && row.letter == letter) return &row;
  }
  return nullptr;
}

std::vector<std::string> spellings(const OptionRow& row) {
  std::vector<std::string> out;
  if (row.letter != '\0') out.push_back({'-', row.letter});
  if (!row.name.empty()) out.push_back("--" + std::string(row.name));
  return out;
}

}  // namespace rlock::cli
