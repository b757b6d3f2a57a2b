#include "cli/options/parse.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "cli/options/exit_codes.hpp"
#include "cli/options/values.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using Words = std::vector<std::string>;

std::string see_help(std::string_view command) {
  return util::format("; see rlock {}{}--help", command, command.empty() ? "" : " ");
}

bool is_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

// The number of words of this option: two if its value is the next word.
size_t word_count(std::string_view option) {
  if (option.starts_with("--")) {
    if (option.find('=') != option.npos) return 1;
    const OptionRow* row = find_option(option.substr(2));
    return row != nullptr && row->takes_next_word() ? 2 : 1;
  }
  for (size_t i = 1; i < option.size(); ++i) {
    const OptionRow* row = find_option(option[i]);
    if (row == nullptr) return 1;
    if (row->takes_value()) return i + 1 == option.size() ? 2 : 1;
  }
  return 1;
}

std::span<const std::string> before_dashes(std::span<const std::string> words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  return words.first(static_cast<size_t>(dashes - words.begin()));
}

// Index of the first word that is neither an option nor an option's value.
size_t command_index(std::span<const std::string> words) {
  size_t i = 0;
  while (i < words.size() && is_option(words[i])) i += word_count(words[i]);
  return std::min(i, words.size());
}

std::string suggestion_text(std::string_view word, std::span<const std::string_view> candidates,
                            std::string_view dashes) {
  auto found = suggestion(word, candidates);
  return found ? util::format(" (did you mean {}{}?)", dashes, *found) : "";
}

Error unknown_command(const std::string& word, bool has_dashes = false) {
  // Words that users of other programs type.
  constexpr std::pair<std::string_view, std::string_view> kMeant[] = {
      {"ls", "rlock status"},
      {"list", "rlock status"},
      {"ps", "rlock status"},
      {"show", "rlock status"},
      {"log", "rlock history"},
      {"lock", "rlock acquire"},
      {"break", "rlock force-unlock"},
      {"kill", "rlock force-unlock"},
      {"exec", "rlock run"},
      {"local", "rlock stop-local"},
      {"unlock",
       "rlock release, for scripts that acquired the lock, or rlock force-unlock, for operators"}};
  for (const auto& [typed, meant] : kMeant) {
    if (word != typed) continue;
    return usage(util::format("unknown command {} (did you mean {}?){}", quoted_word(word), meant,
                              see_help("")));
  }
  if (has_dashes) {
    return usage(util::format(
        "unknown command {}: to run a command under a lock, write rlock run NAME -- COMMAND "
        "[ARG...]",
        quoted_word(word)));
  }
  std::vector<std::string_view> names;
  for (const CommandRow& row : commands()) names.push_back(row.name);
  return usage(util::format("unknown command {}{}{}", quoted_word(word),
                            suggestion_text(word, names, ""), see_help("")));
}

// The advice for an option that flock(1) spells differently, or that rlock does not need.
std::optional<std::string_view> flock_hint(std::string_view option) {
  constexpr std::string_view kExclusive = "a lock is exclusive unless --shared or --slots is given";
  constexpr std::string_view kClosed =
      "leave it out: the command does not inherit any descriptor of rlock";
  constexpr std::pair<std::string_view, std::string_view> kFlock[] = {
      {"--timeout", "that is an option of flock: write --wait"},
      {"--nb", "that is an option of flock: write --nonblock"},
      {"-x", kExclusive},
      {"-e", kExclusive},
      {"--exclusive", kExclusive},
      {"-o", kClosed},
      {"--close", kClosed},
      {"-F", "leave it out: use exec to let rlock take the place of the shell"},
      {"--no-fork", "leave it out: use exec to let rlock take the place of the shell"}};
  for (const auto& [name, hint] : kFlock) {
    if (option == name) return hint;
  }
  return std::nullopt;
}

// `help`: where the user finds the options that could stand there.
Error unknown_option(const CommandRow& command, const std::string& word, const std::string& help) {
  std::string_view shown = std::string_view(word).substr(0, word.find('='));
  const bool from_flock = command.id == CommandId::run || command.id == CommandId::acquire;
  if (!shown.starts_with("--")) {
    const auto hint = from_flock ? flock_hint(shown) : std::nullopt;
    return usage(util::format("unknown option {}{}", quoted_word(shown),
                              hint ? ": " + std::string(*hint) : help));
  }
  const OptionRow* row = find_option(shown.substr(2));
  if (row != nullptr && !row->on_command_line()) {
    return usage(util::format(
        "there is no option {}, because other users can see the command line: use --password-file",
        shown));
  }
  if (row != nullptr && row->id == Opt::json && command.id == CommandId::run) {
    return usage(
        "run has no --json, because standard output belongs to the command: use --event-log FILE");
  }
  if (row != nullptr) {
    return usage(util::format("{} has no option {}{}", command.name, shown, help));
  }
  if (auto hint = from_flock ? flock_hint(shown) : std::nullopt) {
    return usage(util::format("unknown option {}: {}", quoted_word(shown), *hint));
  }
  std::vector<std::string_view> names;
  for (const OptionRow& option : options()) {
    if (option.applies_to(command.id) && !option.name.empty()) names.push_back(option.name);
  }
  return usage(util::format("unknown option {}{}{}", quoted_word(shown),
                            suggestion_text(shown.substr(2), names, "--"), help));
}

Error needs_value(const OptionRow& row, std::string_view help) {
  const std::string shown = shown_name(row.id);
  return usage(util::format("option {} needs a value: {} {}{}", shown, shown, row.metavar, help));
}

// CLI11's messages begin with the option's name, with or without its dashes; the rest differs
// between its releases.
Error to_usage_error(const CLI::ParseError& error, const CommandRow& command) {
  std::string text = error.what();
  std::string word = text.substr(0, text.find_first_of(": "));
  std::string name = word.substr(std::min(word.size(), word.find_first_not_of('-')));
  const OptionRow* row = name.size() == 1 ? find_option(name.front()) : find_option(name);
  if (row == nullptr) return usage(util::printable(text) + see_help(command.name));
  if (row->takes_value()) return needs_value(*row, see_help(command.name));
  return usage(
      util::format("option {} takes no value{}", shown_name(row->id), see_help(command.name)));
}

// Whether one of the words may name this option. A value that only looks like the option is
// harmless.
bool is_mentioned(const OptionRow& row, const Words& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    if (!is_option(word)) return false;
    if (!word.starts_with("--")) return row.letter != '\0' && word.find(row.letter) != word.npos;
    return !row.name.empty() && word.substr(2, word.find('=') - 2) == row.name;
  });
}

// Registers only the mentioned options of the command, because each one costs start-up time. Reads
// values from results(), because CLI11's conversions interpret some texts ("{}", "[a,b]").
using Registered = std::vector<std::pair<Opt, CLI::Option*>>;

Registered register_options(CLI::App& app, CommandId command, const Words& words) {
  Registered registered;
  for (const OptionRow& row : options()) {
    if (!row.applies_to(command) || !is_mentioned(row, words)) continue;
    const std::string names = util::joined(spellings(row), ",");
    CLI::Option* option = row.takes_value() ? app.add_option(names) : app.add_flag(names);
    if (row.takes_value()) {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
      option->disable_flag_override();
    }
    registered.emplace_back(row.id, option);
  }
  return registered;
}

// The row of an option whose value may be left out.
const OptionRow* optional_value_row(const std::string& word) {
  const OptionRow* row =
      word.starts_with("--") ? find_option(std::string_view(word).substr(2)) : nullptr;
  return row != nullptr && row->value_optional ? row : nullptr;
}

// Whether `word` looks like a value of such an option, and not like the name of a lock.
bool looks_like_value(const OptionRow& row, const std::string& word) {
  if (row.id == Opt::contain) return word == row.metavar;
  if (row.kind() == ValueKind::duration && util::parse_duration(word)) return true;
  return !word.empty() && util::leading_digits(word) == word;
}

// The row of the option that takes the next word as its value: of `--wait`, and of `-nw`.
const OptionRow* row_with_value(std::string_view option) {
  return option.starts_with("--") ? find_option(option.substr(2)) : find_option(option.back());
}

// `-w 5 min`: the word behind the value would be the NAME of a lock.
Status check_blank(std::string_view option, std::string_view value, std::string_view next) {
  constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
      {"ms", "ms"},     {"s", "s"},   {"sec", "s"},  {"secs", "s"},  {"second", "s"},
      {"seconds", "s"}, {"m", "m"},   {"min", "m"},  {"mins", "m"},  {"minute", "m"},
      {"minutes", "m"}, {"h", "h"},   {"hour", "h"}, {"hours", "h"}, {"d", "d"},
      {"day", "d"},     {"days", "d"}};
  if (row_with_value(option)->kind() != ValueKind::duration) return Done{};
  if (value.empty() || util::leading_digits(value) != value) return Done{};
  for (const auto& [word, unit] : kUnits) {
    if (next != word) continue;
    return usage(util::format(
        "{0} {1} {2}: a duration contains no blank: write {0} {1}{3}, or put the NAME {4} before "
        "the option",
        option, value, next, unit, quoted_word(next)));
  }
  return Done{};
}

// CLI11 takes the next word for the value of `--reason=` and of `--supersede`. But the value of
// `--supersede` follows an equals sign, or is that of a flag: `--supersede 9` would take a lock
// named "9".
Result<Words> separate_values(std::span<const std::string> words) {
  Words out;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::string next = i + 1 < words.size() ? words[i + 1] : "";
    const OptionRow* optional = optional_value_row(word);
    if (optional != nullptr && looks_like_value(*optional, next)) {
      return usage(util::format(
          "{0} takes its value after an equals sign: write {0}={1}, or put the NAME {2} before the "
          "option",
          word, next, quoted_word(next)));
    }
    const bool empty_value = word.starts_with("--") && word.find('=') == word.size() - 1;
    out.push_back(empty_value ? word.substr(0, word.size() - 1) : word);
    if (empty_value) out.emplace_back();
    if (optional != nullptr) out.emplace_back(kFlagValue);
    const bool value_follows = is_option(word) && word_count(word) == 2 && i + 1 < words.size();
    if (!value_follows) continue;
    out.push_back(words[++i]);
    TRY_STATUS(check_blank(word, words[i], i + 1 < words.size() ? words[i + 1] : ""));
  }
  return out;
}

// `rest` contains what CLI11 did not parse: names, and options that this command does not have.
Result<Words> collect_names(const Words& rest, const CommandRow& command, bool shell_text) {
  bool forgot_dashes = false;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (is_option(rest[i]) && !forgot_dashes) {
      return unknown_option(command, rest[i], see_help(command.name));
    }
    forgot_dashes = command.id == CommandId::run && i > 0;
  }
  if (forgot_dashes && shell_text) {
    return usage("-c takes one word: quote the shell text, as in rlock run NAME -c 'echo hi'");
  }
  if (forgot_dashes) {
    return usage("write -- between NAME and the command: rlock run NAME -- COMMAND [ARG...]");
  }
  return rest;
}

bool asks_for_help(std::string_view word) {
  return word == "--help" || word == "-h";
}

// For --help, or -h, even among other letters.
HelpLength help_length(std::span<const std::string> words) {
  const bool full = std::find(words.begin(), words.end(), "--help") != words.end();
  return full ? HelpLength::full : HelpLength::brief;
}

Result<CommandLine> read_options(const CommandRow& command, Words words,
                                 std::optional<Words> after_dashes) {
  const HelpLength length = help_length(words);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  Registered registered = register_options(app, command.id, words);
  std::reverse(words.begin(), words.end());  // CLI11 wants them in this order
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return to_usage_error(error, command);
  }
  auto given = [&](Opt id) {
    return std::any_of(registered.begin(), registered.end(), [id](const auto& one) {
      return one.first == id && !one.second->results().empty();
    });
  };
  TRY(auto names, collect_names(app.remaining(), command, given(Opt::shell_text)));
  if (given(Opt::help)) return CommandLine(Help{command.id, length});
  if (given(Opt::version)) return CommandLine(Version{given(Opt::json)});
  Choices choices;
  for (const auto& [id, option] : registered) {
    if (option->results().empty()) continue;
    TRY(auto setting,
        make_setting(row_of(id), option->results(), Source::option, shown_name(id), command.id));
    choices.set(id, std::move(setting));
  }
  return CommandLine(
      Invocation{command.id, std::move(choices), std::move(names), std::move(after_dashes)});
}

// The row of the option that this word begins with; nullptr if there is none.
const OptionRow* named_option(std::string_view word) {
  return word.starts_with("--") ? find_option(word.substr(2, word.find('=') - 2))
                                : find_option(word[1]);
}

// Refuses an option before the command word that no command has, or that lacks its value.
Status check_options_before(std::span<const std::string> words) {
  for (size_t i = 0; i < words.size(); i += word_count(words[i])) {
    const OptionRow* row = named_option(words[i]);
    if (row == nullptr) return unknown_option(row_of(CommandId::run), words[i], see_help(""));
    if (i + word_count(words[i]) <= words.size()) continue;
    if (!words[i].starts_with("--")) row = find_option(words[i].back());  // -qu
    return needs_value(*row, see_help(""));
  }
  return Done{};
}

// Without a command word only --help and --version are valid.
Result<CommandLine> parse_without_command(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (asks_for_help(word)) return CommandLine(Help{{}, help_length(words)});
    if (word == "--version" || word == "-V") return CommandLine(Version{asks_for_json(words)});
  }
  TRY_STATUS(check_options_before(words));
  if (words.empty()) return CommandLine(NoCommand{});
  return usage("a command is missing, such as run" + see_help(""));
}

constexpr std::string_view kExitCodesTopic = "exit-codes";
constexpr std::string_view kGuaranteesTopic = "guarantees";

constexpr std::string_view kHelp = "help", kVersion = "version", kManual = "--man";

// The pages of the manual that belong to no command.
constexpr std::pair<std::string_view, std::string_view> kOtherPages[] = {
    {"rlock", "rlock.1"},
    {"recipes", "rlock-recipes.7"},
    {"guarantees", "rlock-guarantees.7"},
    {"formats", "rlock-formats.7"},
    {"protocol", "rlock-protocol.7"},
    {"stability", "rlock-stability.7"},
    {"toml", "rlock.toml.5"},
};

Error unknown_topic(const std::string& topic) {
  const std::vector<std::string> known = help_topics();
  const std::vector<std::string_view> topics(known.begin(), known.end());
  return usage(util::format(
      "unknown topic {}{}: a topic is a command, an exit code such as 69, {}, or a page such as "
      "recipes; rlock help lists the commands and pages",
      quoted_word(topic), suggestion_text(topic, topics, ""), kExitCodesTopic));
}

// A page, which may be called as man(1) calls it: recipes, rlock-recipes, rlock.toml.
std::optional<ManualPage> find_page(std::string_view word) {
  for (const std::string_view before : {"rlock-", "rlock."}) {
    if (word.starts_with(before)) word.remove_prefix(before.size());
  }
  for (const auto& [name, file] : kOtherPages) {
    if (word == name) return ManualPage{std::string(file)};
  }
  const CommandRow* command = find_command(word);
  if (command == nullptr) return std::nullopt;
  return ManualPage{util::format("rlock-{}.1", command->name)};
}

// `rlock help --man [PAGE]`, without --man.
Result<CommandLine> parse_manual(const Words& words) {
  const std::string word = words.empty() ? "rlock" : words.front();
  if (auto page = find_page(word)) return CommandLine(std::move(*page));
  std::vector<std::string_view> names;
  for (const auto& other : kOtherPages) names.push_back(other.first);
  for (const CommandRow& row : commands()) names.push_back(row.name);
  return usage(util::format(
      "the manual has no page {}{}: rlock help --man COMMAND shows that of a command, and rlock "
      "help --man shows rlock(1), which lists the others",
      quoted_word(word), suggestion_text(word, names, "")));
}

Error superfluous(std::string_view command, std::string_view takes, const std::string& word) {
  return usage(util::format("rlock {} takes {}: leave out {}", command, takes, quoted_word(word)));
}

// The words behind `help`.
Result<CommandLine> parse_help(Words words) {
  const bool manual = std::erase(words, kManual) > 0;
  if (words.size() > 1) return superfluous(kHelp, "one topic", words[1]);
  if (manual) return parse_manual(words);
  if (words.empty() || asks_for_help(words.front())) return CommandLine(Help{});
  const std::string& topic = words.front();
  if (topic == kHelp || topic == kVersion) return CommandLine(Help{});
  if (topic == kExitCodesTopic) return CommandLine(ExitCodeHelp{});
  if (topic == kGuaranteesTopic) return CommandLine(GuaranteesHelp{});
  if (const auto code = parse_exit_code(topic)) return CommandLine(ExitCodeHelp{*code});
  if (const CommandRow* command = find_command(topic)) return CommandLine(Help{command->id});
  if (auto page = find_page(topic)) return CommandLine(std::move(*page));
  return unknown_topic(topic);
}

// The words behind `version`.
Result<CommandLine> parse_version(std::span<const std::string> words, bool json) {
  for (size_t i = 0; i < words.size(); i += word_count(words[i])) {
    const std::string& word = words[i];
    if (asks_for_help(word)) return CommandLine(Help{});
    const OptionRow* row = is_option(word) ? named_option(word) : nullptr;
    if (row == nullptr || row->section != Section::general) {
      return superfluous(kVersion, "no argument", word);
    }
  }
  return CommandLine(Version{json});
}

// Whether an option that only `run` and `acquire` have comes before the command, as with flock.
bool begins_as_run(std::span<const std::string> options_before) {
  return std::any_of(options_before.begin(), options_before.end(), [](std::string_view word) {
    if (!is_option(word)) return false;
    const OptionRow* row = named_option(word);
    return row != nullptr && row->section == Section::command && row->applies_to(CommandId::run);
  });
}

// `rlock -n job backup.sh`.
Error without_run(std::span<const std::string> words, size_t name,
                  const std::optional<Words>& after) {
  const auto joined = [](std::span<const std::string> some) {
    return util::joined({some.begin(), some.end()}, " ");
  };
  const auto rest = after ? std::span<const std::string>(*after) : words.subspan(name + 1);
  const std::string line = util::format("rlock run {} -- {}", joined(words.first(name + 1)),
                                        rest.empty() ? "COMMAND [ARG...]" : joined(rest));
  return usage(util::format("unknown command {}: write {}", quoted_word(words[name]),
                            util::printable(util::shortened(line, 200))));
}

}  // namespace

std::vector<std::string> help_topics() {
  std::vector<std::string> topics{std::string(kExitCodesTopic)};
  for (const CommandRow& row : commands()) topics.emplace_back(row.name);
  for (const auto& [name, file] : kOtherPages) topics.emplace_back(name);
  for (const ExitCodeRow& row : exit_codes()) topics.push_back(std::to_string(row.code));
  return topics;
}

Result<CommandLine> parse(std::span<const std::string> words) {
  const auto all = std::exchange(words, before_dashes(words));
  std::optional<Words> after;
  if (words.size() < all.size()) {
    const auto rest = all.subspan(words.size() + 1);
    after.emplace(rest.begin(), rest.end());
  }

  size_t at = command_index(words);
  if (at == words.size()) return parse_without_command(words);
  const auto rest = words.subspan(at + 1);
  if (words[at] == kVersion) return parse_version(rest, asks_for_json(words));
  if (words[at] == kHelp) return parse_help({rest.begin(), rest.end()});
  const CommandRow* command = find_command(words[at]);
  if (command == nullptr) TRY_STATUS(check_options_before(words.first(at)));
  if (command == nullptr && begins_as_run(words.first(at))) return without_run(words, at, after);
  if (command == nullptr) return unknown_command(words[at], after.has_value());
  Words others(words.begin(), words.end());
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(at));
  TRY(others, separate_values(others));
  return read_options(*command, std::move(others), std::move(after));
}

std::optional<CommandId> named_command(std::span<const std::string> words) {
  words = before_dashes(words);
  const size_t at = command_index(words);
  const CommandRow* command = at < words.size() ? find_command(words[at]) : nullptr;
  return command == nullptr ? std::nullopt : std::optional(command->id);
}

bool asks_for_json(std::span<const std::string> words) {
  const bool prints_data = named_command(words) != CommandId::run;
  words = before_dashes(words);
  return prints_data && std::find(words.begin(), words.end(), "--json") != words.end();
}

size_t edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> cost((a.size() + 1) * width);
  auto at = [&](size_t i, size_t j) -> size_t& { return cost[i * width + j]; };
  for (size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({replaced, at(i - 1, j) + 1, at(i, j - 1) + 1});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

std::optional<std::string_view> suggestion(std::string_view word,
                                           std::span<const std::string_view> candidates) {
  constexpr size_t kLongestWord = 40;  // no option is longer; limits the size of the table above
  if (word.empty() || word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string_view> best;
  size_t least = 1 + std::max<size_t>(1, word.size() / 3);
  for (std::string_view candidate : candidates) {
    // A word that is the beginning of a candidate counts as one slip: --conflict for
    // --conflict-exit-code.
    bool begun = word.size() >= 2 && candidate.starts_with(word);
    size_t distance = begun ? 1 : edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

}  // namespace rlock::cli
