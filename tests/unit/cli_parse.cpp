#include "cli/options/parse.hpp"

#include <doctest/doctest.h>

#include "cli/options/values.hpp"
#include "unit/cli_config.hpp"

using namespace rlock;
using namespace rlock::cli;
using test::call;
using test::contains;
using test::Words;

namespace {

std::string parse_error(const Words& words) {
  auto command_line = parse(words);
  REQUIRE_FALSE(command_line);
  CHECK(command_line.error().kind == ErrorKind::usage);
  CHECK(command_line.error().text.find('\n') == std::string::npos);
  return command_line.error().text;
}

}  // namespace

TEST_CASE("options are read before and after the command word") {
  for (const Words& words : {Words{"-u", "redis://a", "run", "x", "--", "true"},
                             Words{"run", "-u", "redis://a", "x", "--", "true"},
                             Words{"run", "x", "--url=redis://a", "--", "true"},
                             Words{"-uredis://a", "run", "x", "--", "true"},
                             Words{"-qvu", "redis://a", "run", "x", "--", "true"}}) {
    Invocation got = call(words);
    CHECK(got.command == CommandId::run);
    CHECK(got.choices.all(Opt::url) == Words{"redis://a"});
    CHECK(got.names == Words{"x"});
    CHECK(got.after_dashes == Words{"true"});
  }
}

TEST_CASE("an option's value is not taken for the command word") {
  CHECK(call({"--url", "run", "status"}).command == CommandId::status);
  CHECK(call({"--password-file", "status", "queue", "x"}).command == CommandId::queue);
}

TEST_CASE("everything after the first -- is the command, byte for byte") {
  Words command{"ls", "--", "-q", "--help", "[a,b]", "", "--wait=5", "\xff", "++"};
  Words words{"run", "x", "--"};
  words.insert(words.end(), command.begin(), command.end());
  Invocation got = call(words);
  CHECK(got.after_dashes == command);
  CHECK_FALSE(got.choices.has(Opt::quiet));
  CHECK_FALSE(got.choices.has(Opt::wait));
}

TEST_CASE("values that CLI11 would interpret come through as they are") {
  for (const char* text : {"[a,b]", "{}", "%%", "", "-5", "a=b", "\"quoted\"", "--json"}) {
    CAPTURE(text);
    CHECK(call({"run", "--reason", text, "x"}).choices.last(Opt::reason) == text);
    std::string joined = std::string("--reason=") + text;
    CHECK(call({"run", joined, "x"}).choices.last(Opt::reason) == text);
  }
  CHECK(call({"status", "[a,b]", "c"}).names == Words{"[a,b]", "c"});
}

TEST_CASE("short options cluster and take their value attached or apart") {
  for (const Words& words : {Words{"run", "-w0", "x"}, Words{"run", "-w", "0", "x"},
                             Words{"run", "--wait=0", "x"}, Words{"run", "--wait", "0", "x"}}) {
    CHECK(call(words).choices.last(Opt::wait) == "0");
    CHECK(call(words).names == Words{"x"});
  }
  Invocation got = call({"run", "-qnw5", "x"});
  CHECK(got.choices.has(Opt::quiet));
  CHECK(got.choices.has(Opt::nonblock));
  CHECK(got.choices.last(Opt::wait) == "5");
}

TEST_CASE("an option given twice: the last one counts, a flag is just set") {
  CHECK(call({"run", "-w", "5", "-w", "6", "x"}).choices.last(Opt::wait) == "6");
  CHECK(call({"run", "-n", "-n", "x"}).choices.has(Opt::nonblock));
  CHECK(call({"-u", "a", "run", "-u", "b", "x"}).choices.all(Opt::url) == Words{"a", "b"});
}

TEST_CASE("a mistake on the command line is refused with what may have been meant") {
  const std::pair<Words, const char*> mistakes[] = {
      {{"rnu", "x"}, "did you mean run?"},
      {{"force_unlock", "x"}, "did you mean force-unlock?"},
      {{"help", "rnu"}, "did you mean run?"},
      {{"help", "frobnicate"},
       "unknown topic \"frobnicate\": a topic is a command, an exit code such as 69, exit-codes, "
       "or a page such as recipes; rlock help lists the commands and pages"},
      {{"help", "recipe"}, "did you mean recipes?"},
      {{"help", "exit"}, "unknown topic \"exit\" (did you mean exit-codes?): "},
      {{"help", "run", "doctor"}, "rlock help takes one topic: leave out \"doctor\""},
      {{"help", "--man", "run", "doctor"}, "leave out \"doctor\""},
      {{"version", "extra"}, "rlock version takes no argument: leave out \"extra\""},
      {{"version", "--frobnicate"}, "leave out \"--frobnicate\""},
      {{"help", "--man", "rnu"}, "did you mean run?"},
      {{"help", "256"}, "unknown topic \"256\""},
      {{"help", "--mam"}, "unknown topic"},
      {{"local", "stop"}, "did you mean rlock stop-local?"},
      {{"operate", "x"}, "unknown command"},
      {{"ls"}, "did you mean rlock status?"},
      {{"list", "x"}, "did you mean rlock status?"},
      {{"lock", "x"}, "did you mean rlock acquire?"},
      {{"kill", "x"}, "did you mean rlock force-unlock?"},
      {{"unlock", "x"}, "rlock release, for scripts"},
      {{"unlock", "x"}, "rlock force-unlock, for operators"},
      {{"nightly", "--", "true"}, "write rlock run NAME -- COMMAND"},
      {{"-u", "redis://a"}, "a command is missing"},
      {{"--url"}, "option --url needs a value: --url URL"},
      {{"-qu"}, "option --url needs a value: --url URL"},
      {{"run", "--tll", "5", "x"}, "did you mean --ttl?"},
      {{"run", "--conflict", "5", "x"}, "did you mean --conflict-exit-code?"},
      {{"run", "-z", "x"}, "unknown option \"-z\""},
      {{"run", "-nz", "x"}, "unknown option \"-z\""},
      {{"--qiet"}, "--quiet"},
      {{"run", "--frobnicate", "x", "--", "true"}, "unknown option"},
      {{"run", "--formats", "x", "--", "true"}, "unknown option"},
      {{"status", "--ttl", "5"}, "status has no option --ttl"},
      {{"status", "-x"}, "unknown option \"-x\"; see rlock status --help"},
      {{"-a", "x"}, "unknown option \"-a\"; see rlock --help"},
      {{"--bogus"}, "unknown option \"--bogus\"; see rlock --help"},
      {{"close", "--exclusive", "x"}, "unknown option \"--exclusive\"; see rlock close --help"},
      {{"acquire", "-x", "x"}, "a lock is exclusive unless"},
      {{"run", "--json", "x", "--", "true"}, "--event-log"},
      {{"--json", "run", "x", "--", "true"}, "--event-log"},
      {{"run", "-w", "5", "min", "x", "--", "true"},
       "-w 5 min: a duration contains no blank: write -w 5m, or put the NAME \"min\" before the "
       "option"},
      {{"close", "x", "--for", "2", "hours"}, "write --for 2h"},
      {{"run", "-w", "deploy", "--", "true"}, "--wait: not a duration: \"deploy\""},
      {{"run", "--timeout", "5", "x", "--", "true"}, "option of flock: write --wait"},
      {{"run", "-x", "x", "--", "true"}, "a lock is exclusive unless --shared or --slots"},
      {{"run", "-e", "x", "--", "true"}, "a lock is exclusive"},
      {{"run", "--exclusive", "x", "--", "true"}, "a lock is exclusive"},
      {{"run", "--nb", "x", "--", "true"}, "write --nonblock"},
      {{"run", "-o", "x", "--", "true"}, "leave it out"},
      {{"run", "-F", "x", "--", "true"}, "leave it out"},
      {{"-n", "job", "true"}, "rlock run -n job -- true"},
      {{"-w", "5", "job", "true"}, "rlock run -w 5 job -- true"},
      {{"run", "--wait"}, "option --wait needs a value"},
      {{"run", "-w"}, "option --wait needs a value"},
      {{"run", "-c"}, "option -c needs a value"},
      {{"run", "x", "--exit-code"}, "option --exit-code needs a value: --exit-code WHAT=N; see"},
      {{"run", "--contain=foo", "x", "--", "true"},
       "the only value of --contain is user, not \"foo\""},
      {{"run", "--nonblock=yes", "x"}, "option --nonblock takes no value"},
      {{"run", "x", "ls", "-l"}, "write -- between NAME and the command"},
      {{"run", "x", "-c", "echo", "hi"}, "quote the shell text"},
      {{"run", "-c", "echo", "hi", "x"}, "rlock run NAME -c 'echo hi'"},
  };
  for (const auto& [words, part] : mistakes) {
    CAPTURE(words.back());
    CAPTURE(part);
    CHECK(contains(parse_error(words), part));
  }
  CHECK_FALSE(contains(parse_error({"xyzzy"}), "did you mean"));
  CHECK_FALSE(contains(parse_error({"\x1b[31m"}), "\x1b"));
}

TEST_CASE("help and version are found anywhere before --") {
  auto help_of = [](const Words& words) {
    auto command_line = parse(words);
    REQUIRE(command_line);
    REQUIRE(std::holds_alternative<Help>(*command_line));
    return std::get<Help>(*command_line).command;
  };
  CHECK(help_of({"--help"}) == std::nullopt);
  CHECK(help_of({"-h"}) == std::nullopt);
  CHECK(help_of({"help"}) == std::nullopt);
  CHECK(help_of({"help", "help"}) == std::nullopt);
  CHECK(help_of({"help", "version"}) == std::nullopt);
  CHECK(help_of({"version", "--help"}) == std::nullopt);
  CHECK(help_of({"help", "queue"}) == CommandId::queue);
  CHECK(help_of({"run", "--help"}) == CommandId::run);
  CHECK(help_of({"--help", "run"}) == CommandId::run);
  auto length_of = [](const Words& words) { return std::get<Help>(*parse(words)).length; };
  for (const Words& words : {Words{"-h"}, Words{"run", "-h"}, Words{"-qh", "status"}}) {
    CHECK(length_of(words) == HelpLength::brief);
  }
  for (const Words& words :
       {Words{"--help"}, Words{"help"}, Words{"help", "run"}, Words{"run", "-h", "--help"}}) {
    CHECK(length_of(words) == HelpLength::full);
  }
  for (const Words& words :
       {Words{"--version"}, Words{"-V"}, Words{"version"}, Words{"status", "-V"}}) {
    auto version = parse(words);
    REQUIRE(version);
    CHECK(std::holds_alternative<Version>(*version));
  }
  auto exit_code_of = [](const Words& words) { return std::get<ExitCodeHelp>(*parse(words)).code; };
  CHECK(exit_code_of({"help", "69"}) == 69);
  CHECK(exit_code_of({"help", "exit-codes"}) == std::nullopt);
  CHECK(std::holds_alternative<GuaranteesHelp>(*parse(Words{"help", "guarantees"})));
  auto page_of = [](const Words& words) { return std::get<ManualPage>(*parse(words)).file; };
  CHECK(page_of({"help", "--man"}) == "rlock.1");
  CHECK(page_of({"help", "--man", "run"}) == "rlock-run.1");
  CHECK(page_of({"help", "status", "--man"}) == "rlock-status.1");
  CHECK(page_of({"help", "--man", "guarantees"}) == "rlock-guarantees.7");
  CHECK(page_of({"help", "--man", "rlock.toml"}) == "rlock.toml.5");
  CHECK(page_of({"help", "rlock-recipes"}) == "rlock-recipes.7");
  auto alone = parse(Words{});
  REQUIRE(alone);
  CHECK(std::holds_alternative<NoCommand>(*alone));
}

TEST_CASE("--json asks for errors as JSON too, but never for run, whose stdout is the command's") {
  CHECK(asks_for_json(Words{"status", "--jsn", "--json"}));
  CHECK(asks_for_json(Words{"--json", "statsu"}));
  CHECK_FALSE(asks_for_json(Words{"run", "--json", "--nope"}));
  CHECK_FALSE(asks_for_json(Words{"status", "--", "--json"}));
}

TEST_CASE("the command is found behind options, whatever is wrong with these") {
  CHECK(named_command(Words{"--connect-timeout", "1x", "check", "n"}) == CommandId::check);
  CHECK(named_command(Words{"--nope", "check"}) == CommandId::check);
  CHECK(named_command(Words{"--user", "check", "status"}) == CommandId::status);
  CHECK_FALSE(named_command(Words{"--user", "check"}));
  CHECK_FALSE(named_command(Words{"--", "check"}));
  CHECK_FALSE(named_command(Words{"chekc", "n"}));
}

TEST_CASE("the edit distance counts a swap of neighbours once") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("ttl", "ttl") == 0);
  CHECK(edit_distance("tlt", "ttl") == 1);
  CHECK(edit_distance("wiat", "wait") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("each text that names something is refused if it is empty, in quotes or a template") {
  const auto accepts = [](const OptionRow& row, Source source, const std::string& word) {
    auto setting = make_setting(row, {word}, source, "PLACE");
    if (setting) return true;
    CHECK(setting.error().kind == ErrorKind::usage);
    CHECK(contains(setting.error().text, source == Source::file ? std::string(row.name) : "PLACE"));
    return false;
  };
  std::vector<std::string> free;
  for (const OptionRow& row : options()) {
    if (row.kind() != ValueKind::text) continue;
    CAPTURE(row.name);
    if (row.demand == Demand::free) free.emplace_back(row.name);
    for (Source source : {Source::option, Source::environment, Source::file}) {
      for (const char* word : {"", " ", "\t"}) {
        CHECK(accepts(row, source, word) == (row.demand == Demand::free));
      }
      const bool names = row.demand == Demand::name || row.demand == Demand::url;
      for (const char* word : {"\"redis://a\"", "'/a'", "$A", "${A}/b", "a$(B)", "/{{ a }}"}) {
        CHECK(accepts(row, source, word) == !names);
      }
      // The password of a URL may contain anything.
      CHECK(accepts(row, source, "redis://:\"${a}\"@a") == (row.demand != Demand::name));
    }
  }
  CHECK(free ==
        Words{"exit-code", "once-per", "owner", "remove", "first", "until", "reason", "password"});
}
