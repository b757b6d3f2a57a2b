// The shells' completion scripts, which are made from templates and the table of options, and the
// names of locks that they ask for.
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "cli/commands/commands.hpp"
#include "cli/options/help.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/settings/connect.hpp"
#include "cli/settings/resolve.hpp"
#include "completion_templates.hpp"
#include "lock/poller.hpp"
#include "redis/store/acl.hpp"
#include "util/fd.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// `a|b|c` with spaces between the words.
std::string spaced(std::string_view alternatives) {
  std::string out(alternatives);
  std::replace(out.begin(), out.end(), '|', ' ');
  return out;
}

// The operands of a command, taken from its usage: one of these forms, or `a|b|c`.
constexpr std::string_view kNameAndCommand = "NAME -- COMMAND", kNames = "NAME...", kName = "NAME";
std::string_view operands_of(const CommandRow& command) {
  const std::string_view usage = command.usage.substr(0, command.usage.find('\n'));
  for (std::string_view form : {kNameAndCommand, kNames, kName}) {
    if (usage.find(form) != usage.npos) return form;
  }
  const std::string_view last = usage.substr(usage.rfind(' ') + 1);
  return last == "[options]" ? std::string_view() : last;
}

// A word that may be the first: a command, `help` or `version`.
struct FirstWord {
  std::string_view name, summary;
  std::string operands;  // see operands_of
};
std::vector<FirstWord> first_words() {
  std::vector<FirstWord> words;
  for (const CommandRow& row : commands()) {
    words.push_back({row.name, row.summary, std::string(operands_of(row))});
  }
  words.push_back({"help", "explain a command, an exit code or a page of the manual",
                   util::joined(help_topics(), "|")});
  words.push_back({"version", "print the version of rlock", ""});
  return words;
}

// The words that fish and zsh offer for the value of an option. The bash script reads the metavar
// itself.
struct ValueForms {
  std::string fish;
  std::string zsh;
};
ValueForms value_forms(const OptionRow& row) {
  const std::string_view metavar = row.metavar;
  if (!row.takes_value()) return {};
  if (row.value_optional) return {"", util::format("::{}: ", metavar)};
  if (metavar == "FILE") return {" -r -F", ":FILE:_files"};
  if (metavar.find('|') == metavar.npos) return {" -x", util::format(":{}: ", metavar)};
  const std::string words = spaced(metavar);
  return {util::format(" -x -a '{}'", words), util::format(":which:({})", words)};
}

// `text` with a backslash before each of the characters.
std::string escaped(std::string_view text, std::string_view characters) {
  std::string out;
  for (char c : text) {
    if (characters.find(c) != characters.npos) out += '\\';
    out += c;
  }
  return out;
}

std::string bash_row(const OptionRow& row) {
  const std::string_view metavar = row.takes_next_word() ? row.metavar : std::string_view();
  return util::format("'{} {}'\n", util::joined(spellings(row), ","), metavar);
}

// Statements that add the wanted options to the lists of a script: options that -h lists go to
// `common`.
template <class Wanted, class ToRow>
std::string additions(std::string_view indent, Wanted wanted, ToRow to_row) {
  std::string out;
  for (const bool common : {true, false}) {
    std::string rows;
    for (const OptionRow& row : options()) {
      const bool listed = row.common == common && row.on_command_line() && wanted(row);
      if (listed) rows += util::format("{}  {}", indent, to_row(row));
    }
    if (rows.empty()) continue;
    out += util::format("{0}{1}+=(\n{2}{0})\n", indent, common ? "common" : "others", rows);
  }
  return out;
}

// A branch of _rlock_rows: the wanted options among those that not every command has.
template <class Wanted>
std::string bash_rows(std::string_view command, Wanted wanted) {
  auto listed = [&](const OptionRow& row) { return row.commands != kEveryCommand && wanted(row); };
  return util::format("    {})\n{}      ;;\n", command, additions("      ", listed, bash_row));
}

std::string bash_completion() {
  Holes holes;
  holes["options of every command"] = additions(
      "  ", [](const OptionRow& row) { return row.commands == kEveryCommand; }, bash_row);
  for (const FirstWord& word : first_words()) {
    holes["commands"] += util::format("  {}\n", word.name);
    holes["operands"] += util::format("    {}) operands='{}' ;;\n", word.name, word.operands);
  }
  for (const CommandRow& command : commands()) {
    holes["options"] +=
        bash_rows(command.name, [&](const OptionRow& row) { return row.applies_to(command.id); });
  }
  // Options before the command word.
  holes["options"] +=
      bash_rows("*", [](const OptionRow& row) { return row.section == Section::general; });
  return fill_template(kBashTemplate, holes).value();
}

// Adds patterns of the options whose value is the next word: `run --wait` and, because letters may
// be joined, `run -*w`.
void add_patterns(Holes& holes, std::string_view command, const OptionRow& row) {
  auto add = [&](const char* hole, const std::string& option) {
    util::append(holes[hole], " ", util::format("'{} {}'", command, option));
  };
  if (!row.name.empty()) add("names with values", util::format("--{}", row.name));
  if (row.letter != '\0') add("letters with values", util::format("-*{}", row.letter));
}

std::string fish_quoted(std::string_view text) {
  return util::format("'{}'", escaped(text, "\\'"));
}

std::string fish_option(const OptionRow& row) {
  std::string out = "complete -c rlock";
  if (row.section == Section::general) {
    out += row.common ? "" : " -n __rlock_beyond_dash";
  } else {
    out += row.common ? " -n '__rlock_in" : " -n '__rlock_all_of";
    for (const CommandRow& command : commands()) {
      if (row.applies_to(command.id)) out += util::format(" {}", command.name);
    }
    out += "'";
  }
  if (row.letter != '\0') out += util::format(" -s {}", row.letter);
  if (!row.name.empty()) out += util::format(" -l {}", row.name);
  return out + util::format("{} -d {}\n", value_forms(row).fish, fish_quoted(row.help));
}

std::string fish_operand(std::string_view condition, std::string_view candidates) {
  return util::format("complete -c rlock -n {} -a {}\n", fish_quoted(condition),
                      fish_quoted(candidates));
}

std::string fish_completion() {
  Holes holes;
  std::string one_name = "__rlock_at_operand";
  for (const FirstWord& word : first_words()) {
    holes["commands"] += util::format("complete -c rlock -n __rlock_at_command -a {} -d {}\n",
                                      word.name, fish_quoted(word.summary));
    if (word.operands == kNames) {
      holes["operands"] +=
          fish_operand(util::format("__rlock_in {}", word.name), "(__rlock_names)");
    } else if (word.operands.starts_with(kName)) {
      one_name += util::format(" {}", word.name);
    } else if (!word.operands.empty()) {
      holes["operands"] +=
          fish_operand(util::format("__rlock_at_operand {}", word.name), spaced(word.operands));
    }
  }
  holes["operands"] += fish_operand(one_name, "(__rlock_names)") +
                       fish_operand("__rlock_after_name", "--") +
                       fish_operand("__rlock_after_dashes", "(__rlock_rest)");
  for (const OptionRow& row : options()) {
    if (!row.on_command_line()) continue;
    holes["options"] += fish_option(row);
    if (!row.takes_next_word()) continue;
    if (row.section == Section::general) {
      add_patterns(holes, "*", row);
      continue;
    }
    for (const CommandRow& command : commands()) {
      if (row.applies_to(command.id)) add_patterns(holes, command.name, row);
    }
  }
  return fill_template(kFishTemplate, holes).value();
}

// Escapes text for a spec of _arguments within single quotes.
std::string zsh_description(std::string_view text) {
  std::string out;
  for (char c : escaped(text, "\\[]:")) {
    out += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return out;
}

// The spec of an option for zsh. `-w+`: the value may be in the same word; `--wait=`: it may also
// follow an equals sign; `--supersede=-`: it may only follow one.
std::string zsh_option(const OptionRow& row, std::string_view help) {
  const std::string letter = util::format("-{}{}", row.letter, row.takes_value() ? "+" : "");
  const char* joint = row.value_optional ? "=-" : row.takes_value() ? "=" : "";
  const std::string name = util::format("--{}{}", row.name, joint);
  const bool repeatable = row.id == Opt::url;
  std::string names =
      util::format("'{}{}", repeatable ? "*" : "", row.name.empty() ? letter : name);
  if (row.letter != '\0' && !row.name.empty()) {
    const std::string others = util::format("(-{} --{})", row.letter, row.name);
    names = util::format("'{}'{{{},{}}}'", repeatable ? "*" : others, letter, name);
  }
  return util::format("{}[{}]{}'\n", names, zsh_description(help), value_forms(row).zsh);
}

std::string zsh_operands(std::string_view form) {
  if (form == kNameAndCommand) return "'1: :_rlock_names' '2: :(--)'";
  if (form == kNames) return "'*: :_rlock_names'";
  if (form == kName) return "'1: :_rlock_names'";
  return form.empty() ? "" : util::format("'1:which:({})'", spaced(form));
}

std::string zsh_completion() {
  Holes holes;
  for (const FirstWord& word : first_words()) {
    holes["commands"] += util::format("    '{}:{}'\n", word.name, zsh_description(word.summary));
    const CommandRow* command = find_command(word.name);
    auto own = [&](const OptionRow& row) {
      return command != nullptr && row.section == Section::command && row.applies_to(command->id);
    };
    auto to_row = [&](const OptionRow& row) {
      return zsh_option(row, text_for(row, command->id).help);
    };
    holes["options"] += util::format("    {})\n{}      operands=({})\n      ;;\n", word.name,
                                     additions("      ", own, to_row), zsh_operands(word.operands));
  }
  holes["general options"] = additions(
      "  ", [](const OptionRow& row) { return row.section == Section::general; },
      [](const OptionRow& row) { return zsh_option(row, row.help); });
  return fill_template(kZshTemplate, holes).value();
}

// The whole completion script; nullopt for another shell.
std::optional<std::string> completion_script(std::string_view shell) {
  if (shell == "bash") return bash_completion();
  if (shell == "zsh") return zsh_completion();
  if (shell == "fish") return fish_completion();
  return std::nullopt;
}

// A user has pressed TAB and is waiting, so a completion never takes longer, whatever the server
// does.
constexpr Millis kTotalTimeout{200};
constexpr Millis kRequestTimeout{150};
constexpr size_t kMostNames = 1000;

// A timer, because name resolution and the file system have no time limits of their own.
void exit_silently_after(Millis timeout) {
  struct sigaction action {};
  action.sa_handler = [](int) { _exit(kSuccess); };
  sigaction(SIGALRM, &action, nullptr);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
  itimerval timer{};
  timer.it_value.tv_usec = std::chrono::microseconds(timeout).count();
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// Whether a terminal can show the name, and a shell would not mistake it for an option.
bool can_be_offered(const std::string& name) {
  return lock::LockName::parse(name) && util::printable(name) == name && name.front() != '-';
}

// As many names as arrive in time: of all locks, or only of held ones.
std::set<std::string> read_names(lock::LockInspector& inspector, bool only_held) {
  lock::SystemPoller poller;
  const TimePoint deadline = poller.now() + kRequestTimeout;
  auto finish = [&](auto request) {
    return lock::finish(poller, std::move(request), deadline, inspector.server());
  };
  // Filters a page with locks that are held, waited for, or were until a moment ago.
  auto held = [&](const std::vector<std::string>& in_use) {
    std::vector<lock::InspectCall> calls;
    for (const std::string& text : in_use) {
      auto name = lock::LockName::parse(text);
      if (!name || calls.size() == kMostNames) continue;
      calls.push_back({*std::move(name)});
      calls.back().holders_page = 1;
    }
    std::vector<std::string> names;
    if (calls.empty()) return names;
    auto locks = finish(inspector.inspect_all(calls));
    for (size_t i = 0; locks && i < locks->size(); ++i) {
      const auto& lock = (*locks)[i];
      if (lock && !lock->holders.empty()) names.push_back(calls[i].name.text());
    }
    return names;
  };
  std::set<std::string> names;
  std::string cursor;
  do {
    auto page = finish(inspector.list_names(cursor));
    if (!page) break;
    const auto more = only_held ? held(page->in_use) : std::move(page->names);
    std::copy_if(more.begin(), more.end(), std::inserter(names, names.end()), can_be_offered);
    cursor = page->cursor;
  } while (!cursor.empty() && names.size() < kMostNames);
  return names;
}

// Prints names of locks. `words` are the words before the name, which may set the server and the
// prefix. Prints no errors, because they would garble the line that is being completed.
int print_names(std::span<const std::string> words) {
  exit_silently_after(kTotalTimeout);
  auto command_line = parse(words);
  auto* invocation = command_line ? std::get_if<Invocation>(&*command_line) : nullptr;
  if (invocation == nullptr) return kSuccess;
  auto configured = resolve(*invocation, system_getenv, default_config_files(system_getenv));
  if (!configured) return kSuccess;
  // A TAB does not run a program of the user's, which might keep running after the time limit.
  if (invocation->choices.has(Opt::password_command)) return kSuccess;
  auto settings = connection_options(invocation->choices);
  if (!settings) return kSuccess;
  settings->connect_timeout = kRequestTimeout;
  settings->local_start = redis::LocalStart::forbidden;
  auto make_server = redis::open(*settings);
  if (!make_server) return kSuccess;
  std::string lines;
  auto server = (*make_server)();
  const bool only_held = invocation->command == CommandId::force_unlock;
  for (const std::string& name : read_names(*server, only_held)) lines += name + "\n";
  return print_result(lines);
}

// Prints the content of a committed file: a completion script, the public names, the commands, or
// the manual page whose template is on stdin.
int generate(std::string_view what) {
  if (auto script = completion_script(what)) return print_result(*script);
  constexpr size_t kLongestTemplate = size_t{1024} * 1024;
  std::optional<std::string> page;
  if (what == "man") {
    auto source = util::read_to_end(util::Fd(STDIN_FILENO), kLongestTemplate);
    if (source) page = manual_page(*source, redis::least_acl("rlock:"));
  }
  if (page) return print_result(*page);
  if (what == "names") return print_result(public_names());
  if (what == "commands") {
    std::string lines;
    for (const CommandRow& row : commands()) lines += std::string(row.name) + "\n";
    return print_result(lines);
  }
  print_message(
      "usage: rlock --generate bash|zsh|fish|names|commands, or rlock --generate man <TEMPLATE");
  return kUsage;
}

Error bad_shell(const std::string& what) {
  return usage(what + ": rlock completion bash|zsh|fish");
}

}  // namespace

Result<Report> completion_command(const Invocation& invocation) {
  const auto& words = invocation.names;
  if (words.size() != 1 || invocation.after_dashes) return bad_shell("name a shell");
  if (auto script = completion_script(words.front())) {
    return Report{.code = print_result(*script)};
  }
  return bad_shell("there is no completion script for " + quoted_word(words.front()));
}

std::optional<int> hidden_command(std::span<const std::string> words) {
  if (words.empty()) return std::nullopt;
  if (words.front() == "__complete") return print_names(words.subspan(1));
  if (words.front() == "--generate" && words.size() == 2) return generate(words[1]);
  return std::nullopt;
}

}  // namespace rlock::cli
