#include "cli/options/help.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cli/options/exit_codes.hpp"
#include "unit/cli_fixture.hpp"

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
  const std::string general = general_help(HelpLength::full, "");
  const std::string open = command_help(CommandId::open, HelpLength::full);
  const std::string brief = command_help(CommandId::run, HelpLength::brief);
  CHECK(general == rlock::test::golden("help.txt", general));
  CHECK(open == rlock::test::golden("help-open.txt", open));
  CHECK(brief == rlock::test::golden("help-run-brief.txt", brief));
  check_width(general);
  for (const CommandRow& row : commands()) {
    CAPTURE(row.name);
    check_width(command_help(row.id, HelpLength::full));
  }
}

TEST_CASE("-h fits on a screen of 45 lines: a sentence, examples, at most 14 options, --help") {
  auto check_brief = [](const std::string& text) {
    CAPTURE(text);
    check_width(text);
    CHECK(std::count(text.begin(), text.end(), '\n') <= 45);
    CHECK(text.find("Examples:") < text.find("  -"));
  };
  check_brief(general_help(HelpLength::brief, ""));
  for (const CommandRow& row : commands()) {
    const std::string text = command_help(row.id, HelpLength::brief);
    check_brief(text);
    CHECK(std::isupper(static_cast<unsigned char>(text.front())) != 0);
    CHECK(text.find(".\n\nUsage: rlock ") < text.find("Examples:"));
    CHECK(text.ends_with("\nAll options: rlock " + std::string(row.name) + " --help\n"));
    size_t listed = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("  -") || line.starts_with("      --")) ++listed;
    }
    CHECK(listed <= 14);
  }
}

TEST_CASE("help ends with the project's address if the build knows it") {
  for (const HelpLength length : {HelpLength::brief, HelpLength::full}) {
    const std::string known = general_help(length, "https://example.org/rlock");
    const std::string unknown = general_help(length, "");
    CHECK(known.find("Packages, questions, bugs and security: https://example.org/rlock\n") <
          known.size());
    CHECK(unknown.find("Packages") == unknown.npos);
    CHECK(unknown.find("Questions and bugs: the issues of the repository") < unknown.size());
    check_width(known);
  }
}

TEST_CASE("run and acquire list their options in groups, other commands in one") {
  const std::string text = command_help(CommandId::run, HelpLength::full);
  size_t at = 0;
  for (const char* title : {"Waiting for the lock", "Running once", "Holders and lease",
                            "Command and its processes", "Output", "Storage", "Connection"}) {
    const size_t found = text.find("\n\n" + std::string(title));
    CAPTURE(title);
    CHECK(found < text.size());
    CHECK(found > at);
    at = found;
  }
  // None of its options runs a command once.
  CHECK(command_help(CommandId::acquire, HelpLength::full).find("Running once") ==
        std::string::npos);
  CHECK(command_help(CommandId::status, HelpLength::full).find("\n\nOptions:\n") !=
        std::string::npos);
}

TEST_CASE("each command's help names each of its options") {
  for (const CommandRow& command : commands()) {
    const std::string text = command_help(command.id, HelpLength::full);
    for (const OptionRow& option : options()) {
      if (option.name.empty()) continue;
      CAPTURE(option.name);
      // `--for` is not in `--format`.
      const std::string spelling = " --" + std::string(option.name);
      bool named = false;
      for (size_t at = text.find(spelling); at != text.npos; at = text.find(spelling, at + 1)) {
        const char next = text[at + spelling.size()];
        named = named || !(std::isalpha(static_cast<unsigned char>(next)) != 0 || next == '-');
      }
      CHECK(named == option.applies_to(command.id));
    }
  }
}

TEST_CASE("each option names its user in at most eight words: a recipe, or what people report") {
  std::ifstream file(RLOCK_RECIPES);
  const std::string recipes(std::istreambuf_iterator<char>(file), {});
  REQUIRE(rlock::test::contains(recipes, ".SH "));
  for (const OptionRow& row : options()) {
    const std::string user(row.needed_by);
    CAPTURE(row.name);
    CAPTURE(user);
    CHECK(std::count(user.begin(), user.end(), ' ') < 8);
    if (user.starts_with("report: ")) continue;
    CHECK(rlock::test::contains(recipes, ".SH \"" + user + "\"\n"));
  }
}

TEST_CASE("rlock help explains each exit code, and says for those of rlock what to do") {
  using rlock::ErrorKind;
  for (ErrorKind kind : {ErrorKind::usage, ErrorKind::wrong_type, ErrorKind::unavailable,
                         ErrorKind::internal, ErrorKind::system, ErrorKind::busy, ErrorKind::lost,
                         ErrorKind::denied, ErrorKind::config}) {
    const int code = static_cast<int>(kind);
    CAPTURE(code);
    CHECK(rlock::test::contains(exit_code_help(code), "\nWhat to do: "));
    CHECK(rlock::test::contains(exit_code_help({}), "\n  " + std::to_string(code) + " "));
  }
  for (int code : {124, 126, 127}) {
    CHECK(rlock::test::contains(exit_code_help(code), "\nWhat to do: "));
  }
  for (int code = 0; code <= 255; ++code) check_width(exit_code_help(code));
  CHECK(rlock::test::contains(exit_code_help(0), "success"));
  CHECK(rlock::test::contains(exit_code_help(137), "SIGKILL"));
  CHECK(rlock::test::contains(exit_code_help(3), "status -q, check and doctor"));
  CHECK(rlock::test::contains(exit_code_help(99), "or one that --exit-code or -E chose"));
  CHECK_FALSE(rlock::test::contains(exit_code_help(99), "doctor"));
}

TEST_CASE("rlock help guarantees names the conditions of the promise within a screen") {
  const std::string text = guarantees_help();
  check_width(text);
  CHECK(std::count(text.begin(), text.end(), '\n') <= 24);
  CHECK(rlock::test::contains(text, "within 1 %"));
  CHECK(rlock::test::contains(text, "fencing token"));
  CHECK(rlock::test::contains(text, "rlock-guarantees(7)"));
}

TEST_CASE("run --help and the manual list the exit codes of the same table") {
  const std::string help = command_help(CommandId::run, HelpLength::full);
  const auto page = manual_page("@exit status@\n", "");
  REQUIRE(page);
  for (const ExitCodeRow& row : exit_codes()) {
    CAPTURE(row.code);
    CHECK(rlock::test::contains(help, "\n  " + std::to_string(row.code) + " "));
    CHECK(rlock::test::contains(*page, "\n.B " + std::to_string(row.code) + "\n"));
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

TEST_CASE("each option has a long text for the manual") {
  for (const CommandRow& command : commands()) {
    for (const OptionRow& option : options()) {
      if (!option.applies_to(command.id) || option.id == Opt::version) continue;
      const bool own = option.section == Section::command;
      const OptionText text =
          own ? text_for(option, command.id) : OptionText{option.help, {}, option.manual};
      CAPTURE(command.name);
      CAPTURE(option.name);
      CHECK_FALSE(text.help.ends_with('.'));
      CHECK(text.manual.ends_with('.'));
    }
  }
}

TEST_CASE("the page of a command refers to an earlier page for a long text of an option") {
  auto page = manual_page("@options acquire@\n", "");
  REQUIRE(page);
  CHECK(rlock::test::contains(*page, "It cannot be combined with busy= of "));
  CHECK(rlock::test::contains(*page,
                              "then exit with 75 (default: forever).\n"
                              ".BR rlock\\-run (1)\nsays more.\n"));
  CHECK(rlock::test::contains(*page,
                              "waiter that has this option.\n"
                              ".BR rlock\\-run (1)\nsays more.\n"));
  CHECK_FALSE(rlock::test::contains(*page, "max\\-run"));
  CHECK_FALSE(manual_page("@options of nothing@", ""));
}

TEST_CASE("the page of a command names each general option that the command has") {
  const auto page = manual_page("@options run@\n", "");
  REQUIRE(page);
  for (const OptionRow& row : options()) {
    if (row.section != Section::general || !row.applies_to(CommandId::run)) continue;
    CAPTURE(row.name);
    std::string name = "\\fB";
    for (char c : "--" + std::string(row.name)) name += c == '-' ? "\\-" : std::string(1, c);
    CHECK(rlock::test::contains(*page, name + "\\fR"));
  }
}

TEST_CASE("the page of a command has its usage, its exit status and its examples") {
  const auto page = manual_page(
      "@synopsis run@\n@exit status run@\n@examples run@\n@exit status check@\n@related open@\n",
      "");
  REQUIRE(page);
  CHECK(
      page->starts_with("\\fBrlock run\\fR [options] \\fINAME\\fR \\fB\\-\\-\\fR \\fICOMMAND\\fR"));
  CHECK(rlock::test::contains(*page, "128+N"));
  CHECK(rlock::test::contains(*page, "\n.B 124\n"));
  CHECK(rlock::test::contains(*page, "\nrlock run shop/dump \\-c \\(aqpg_dump app"));
  CHECK(rlock::test::contains(*page, "0 if all is well"));
  CHECK(rlock::test::contains(*page, ".BR rlock\\-close (1),\n"));
  CHECK_FALSE(rlock::test::contains(*page, ".BR rlock\\-open (1)"));
}

TEST_CASE("a template's holes are filled, and a shell's own @ is kept") {
  const Holes holes{{"names", "a\nb\n"}, {"one", "1"}};
  CHECK(fill_template("x @one@ y\n@names@\n", holes) == "x 1 y\na\nb\n");
  CHECK(fill_template("\"${rows[@]}\" @one@ a@b.c", holes) == "\"${rows[@]}\" 1 a@b.c");
  CHECK(fill_template("", holes) == "");
  CHECK_FALSE(fill_template("@two@", holes));
}
