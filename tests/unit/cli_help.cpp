#include "cli/options/help.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "unit/cli_golden.hpp"

using namespace rlock::cli;

namespace {

void check_width(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
    CHECK_FALSE(line.ends_with(' '));
  }
  CHECK(text.ends_with('\n'));
}

}  // namespace

TEST_CASE("help is what was last reviewed, within 80 columns") {
  CHECK(short_help() == rlock::test::golden("help-short.txt", short_help()));
  CHECK(general_help() == rlock::test::golden("help.txt", general_help()));
  check_width(short_help());
  check_width(general_help());
  for (const CommandRow& row : commands()) {
    CAPTURE(row.name);
    const std::string text = command_help(row.id);
    CHECK(text == rlock::test::golden("help-" + std::string(row.name) + ".txt", text));
    check_width(text);
  }
}

TEST_CASE("each command's help names each of its options") {
  for (const CommandRow& command : commands()) {
    const std::string text = command_help(command.id);
    for (const OptionRow& option : options()) {
      if (option.name.empty()) continue;
      CAPTURE(option.name);
      bool named = text.find(" --" + std::string(option.name)) != std::string::npos;
      CHECK(named == option.applies_to(command.id));
    }
  }
}

TEST_CASE("no two options share a name, no two options of a command a letter") {
  for (const OptionRow& row : options()) {
    CAPTURE(row.name);
    CHECK((row.name.empty() || find_option(row.name) == &row));
    CHECK_FALSE(row.help.empty());
    for (const OptionRow& other : options()) {
      bool together = &other != &row && (other.commands & row.commands) != 0;
      CHECK_FALSE((together && row.letter != '\0' && row.letter == other.letter));
    }
  }
}
