// The completion scripts of the shells, which are made from templates and the table of options, and
// the names of locks that they ask for.
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>

#include "cli/commands/commands.hpp"
#include "cli/options/help.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/settings/config.hpp"
#include "cli/settings/connect.hpp"
#include "completion_templates.hpp"
#include "lock/poller.hpp"
#include "redis/store/acl.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// What a shell offers for an option's value.
enum class ValueKind : uint8_t { none, text, words, file, folder };

// What a command takes beside its options, read from its usage.
enum class Operands : uint8_t { name, names, name_and_command, words };
struct OperandsRow {
  Operands kind;
  std::string_view words;  // with Operands::words: `a|b|c`
};

ValueKind value_kind(const OptionRow& row) {
  if (!row.takes_next_word()) return ValueKind::none;
  if (row.metavar.find('|') != row.metavar.npos) return ValueKind::words;
  if (row.metavar == "FILE") return ValueKind::file;
  return row.metavar == "DIR" ? ValueKind::folder : ValueKind::text;
}

// `a|b|c` with spaces between the words.
std::string spaced(std::string_view alternatives) {
  std::string out(alternatives);
  std::replace(out.begin(), out.end(), '|', ' ');
  return out;
}

OperandsRow operands_of(const CommandRow& command) {
  std::string_view usage = command.usage.substr(0, command.usage.find('\n'));
  if (usage.find("NAME -- COMMAND") != usage.npos) return {Operands::name_and_command, {}};
  if (usage.find("NAME...") != usage.npos) return {Operands::names, {}};
  if (usage.find("NAME") != usage.npos) return {Operands::name, {}};
  const std::string_view last = usage.substr(usage.rfind(' ') + 1);
  return {Operands::words, last == "[options]" ? std::string_view() : last};
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

std::string row_text(const OptionRow& row) {
  std::string text = "      '";
  for (const std::string& spelling : spellings(row)) {
    if (text.back() != '\'') text += ',';
    text += spelling;
  }
  const std::string_view metavar = row.takes_next_word() ? row.metavar : std::string_view();
  return text + " " + std::string(metavar) + "'\n";
}

// nullptr: before the command word, where only the options that every command has are offered.
std::string rows_of(const CommandRow* command) {
  std::string out = "    " + (command == nullptr ? "*" : std::string(command->name));
  out += ") rows=(\n";
  for (const OptionRow& row : options()) {
    bool wanted =
        command == nullptr ? row.section == Section::general : row.applies_to(command->id);
    if (wanted) out += row_text(row);
  }
  return out + "    ) ;;\n";
}

std::string operands_text(const CommandRow& command) {
  constexpr const char* kForms[] = {"NAME", "NAME...", "'NAME -- COMMAND'"};
  const OperandsRow row = operands_of(command);
  if (row.kind == Operands::words) return "'" + std::string(row.words) + "'";
  return kForms[static_cast<size_t>(row.kind)];
}

std::string command_names() {
  std::string out;
  for (const CommandRow& command : commands()) {
    if (!out.empty()) out += ' ';
    out += command.name;
  }
  return out;
}

std::string bash_completion() {
  std::string rows;
  std::string operands;
  for (const CommandRow& command : commands()) {
    rows += rows_of(&command);
    operands +=
        "    " + std::string(command.name) + ") operands=" + operands_text(command) + " ;;\n";
  }
  rows += rows_of(nullptr);
  return fill_template(kBashTemplate,
                       {{"commands", command_names()}, {"options", rows}, {"operands", operands}})
      .value();
}

std::string quoted(std::string_view text) {
  return "'" + escaped(text, "\\'") + "'";
}

// The options that take a value, as `run --wait` and, since letters may be joined, `run -*w`.
struct Patterns {
  std::string names;
  std::string letters;
};

void add_pattern(std::string& list, const std::string& command, const std::string& option) {
  if (!list.empty()) list += ' ';
  list += "'" + command + " " + option + "'";
}

void add_patterns(Patterns& out, const std::string& command, const OptionRow& row) {
  if (!row.name.empty()) add_pattern(out.names, command, "--" + std::string(row.name));
  if (row.letter != '\0') add_pattern(out.letters, command, std::string("-*") + row.letter);
}

Patterns value_patterns() {
  Patterns out;
  for (const OptionRow& row : options()) {
    if (!row.takes_next_word()) continue;
    if (row.section == Section::general) add_patterns(out, "*", row);
    for (const CommandRow& command : commands()) {
      bool own = row.section == Section::command && row.applies_to(command.id);
      if (own) add_patterns(out, std::string(command.name), row);
    }
  }
  return out;
}

std::string value_text(const OptionRow& row) {
  constexpr const char* kForms[] = {"", " -x", "", " -r -F",
                                    " -x -a '(__fish_complete_directories)'"};
  const ValueKind kind = value_kind(row);
  if (kind == ValueKind::words) return " -x -a '" + spaced(row.metavar) + "'";
  return kForms[static_cast<size_t>(kind)];
}

std::string option_line(const OptionRow& row) {
  std::string out = "complete -c rlock";
  if (row.section == Section::command) {
    out += " -n '__rlock_in";
    for (const CommandRow& command : commands()) {
      if (row.applies_to(command.id)) out += " " + std::string(command.name);
    }
    out += "'";
  }
  if (row.letter != '\0') out += std::string(" -s ") + row.letter;
  if (!row.name.empty()) out += " -l " + std::string(row.name);
  return out + value_text(row) + " -d " + quoted(row.help) + "\n";
}

std::string operand_line(std::string_view condition, std::string_view candidates) {
  return "complete -c rlock -n " + quoted(condition) + " -a " + quoted(candidates) + "\n";
}

std::string operand_lines() {
  std::string out;
  std::string one_name = "__rlock_at_operand";
  for (const CommandRow& command : commands()) {
    OperandsRow row = operands_of(command);
    const std::string name(command.name);
    if (row.kind == Operands::names) {
      out += operand_line("__rlock_in " + name, "(__rlock_names)");
    } else if (row.kind == Operands::words && !row.words.empty()) {
      out += operand_line("__rlock_at_operand " + name, spaced(row.words));
    } else {
      one_name += " " + name;
    }
  }
  return out + operand_line(one_name, "(__rlock_names)") +
         operand_line("__rlock_after_name", "--") +
         operand_line("__rlock_after_dashes", "(__rlock_rest)");
}

std::string command_line(const CommandRow& command) {
  return "complete -c rlock -n __rlock_at_command -a " + std::string(command.name) + " -d " +
         quoted(command.summary) + "\n";
}

std::string fish_completion() {
  Patterns patterns = value_patterns();
  Holes holes{{"names with values", patterns.names},
              {"letters with values", patterns.letters},
              {"operands", operand_lines()}};
  for (const CommandRow& command : commands()) holes["commands"] += command_line(command);
  for (const OptionRow& row : options()) holes["options"] += option_line(row);
  return fill_template(kFishTemplate, holes).value();
}

// For a spec of _arguments within single quotes.
std::string description(std::string_view text) {
  std::string out;
  for (char c : escaped(text, "\\[]:")) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out;
}

std::string value_spec(const OptionRow& row) {
  constexpr const char* kActions[] = {"", ": ", "", ":_files", ":_files -/"};
  const std::string metavar(row.metavar);
  const ValueKind kind = value_kind(row);
  if (row.value_optional) return "::" + metavar + ": ";
  if (kind == ValueKind::none) return {};
  if (kind == ValueKind::words) return ":which:(" + spaced(metavar) + ")";
  return ":" + metavar + kActions[static_cast<size_t>(kind)];
}

// `-w+`: the value may be in the same word; `--wait=`: also after an equals sign; `--supersede=-`:
// there alone.
std::string names_spec(const OptionRow& row) {
  const std::string letter = std::string("-") + row.letter + (row.takes_value() ? "+" : "");
  const char* joint = row.value_optional ? "=-" : row.takes_value() ? "=" : "";
  const std::string name = "--" + std::string(row.name) + joint;
  const bool repeatable = row.id == Opt::url;
  if (row.letter == '\0') return (repeatable ? "'*" : "'") + name;
  if (row.name.empty()) return (repeatable ? "'*" : "'") + letter;
  const std::string before =
      repeatable ? "*" : std::string("(-") + row.letter + " --" + std::string(row.name) + ")";
  return "'" + before + "'{" + letter + "," + name + "}'";
}

std::string spec(const OptionRow& row, std::string_view help) {
  return names_spec(row) + "[" + description(help) + "]" + value_spec(row) + "'\n";
}

std::string operands_spec(const CommandRow& command) {
  constexpr const char* kForms[] = {"'1: :_rlock_names'", "'*: :_rlock_names'",
                                    "'1: :_rlock_names' '2: :(--)'"};
  const OperandsRow row = operands_of(command);
  if (row.kind != Operands::words) return kForms[static_cast<size_t>(row.kind)];
  return row.words.empty() ? "" : "'1:which:(" + spaced(row.words) + ")'";
}

std::string options_of(const CommandRow& command) {
  std::string out = "    " + std::string(command.name) + ")\n      options=(\n";
  for (const OptionRow& row : options()) {
    if (row.section != Section::command || !row.applies_to(command.id)) continue;
    out += "        " + spec(row, text_for(row, command.id).help);
  }
  return out + "      )\n      operands=(" + operands_spec(command) + ")\n      ;;\n";
}

std::string zsh_completion() {
  Holes holes;
  for (const CommandRow& command : commands()) {
    holes["commands"] +=
        "    '" + std::string(command.name) + ":" + description(command.summary) + "'\n";
    holes["options"] += options_of(command);
  }
  for (const OptionRow& row : options()) {
    if (row.section == Section::general) holes["general options"] += "    " + spec(row, row.help);
  }
  return fill_template(kZshTemplate, holes).value();
}

struct ShellRow {
  std::string_view name;
  std::string (*script)();
};
constexpr ShellRow kShells[] = {
    {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

// The whole completion script; nothing for another shell.
std::optional<std::string> completion_script(std::string_view shell) {
  for (const auto& [name, script] : kShells) {
    if (name == shell) return script();
  }
  return std::nullopt;
}

// Somebody pressed TAB and is waiting: a completion never takes longer, whatever the server does.
constexpr Millis kTotalTimeout{200};
constexpr Millis kRequestTimeout{150};
constexpr size_t kMostNames = 1000;

// Name resolution and the file system have no time limit of their own.
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

// A name that a terminal can show, and that is not taken for an option when it is typed.
bool can_be_offered(const std::string& name) {
  return lock::LockName::parse(name) && util::printable(name) == name && name.front() != '-';
}

// As many names as arrive in time: of all locks, or of those that are held.
class NameReader {
 public:
  NameReader(lock::LockInspector& inspector, bool only_held)
      : inspector_(inspector), only_held_(only_held) {}

  std::set<std::string> read() {
    std::set<std::string> names;
    std::string cursor;
    do {
      auto page = finish(inspector_.list_names(cursor));
      if (!page) break;
      const auto more = only_held_ ? held(page->in_use) : std::move(page->names);
      std::copy_if(more.begin(), more.end(), std::inserter(names, names.end()), can_be_offered);
      cursor = page->cursor;
    } while (!cursor.empty() && names.size() < kMostNames);
    return names;
  }

 private:
  template <class T>
  Result<T> finish(lock::InFlight<T> request) {
    return lock::finish(poller_, std::move(request), deadline_, inspector_.server());
  }

  // Of a page with locks that are held, waited for, or were until a moment ago.
  std::vector<std::string> held(const std::vector<std::string>& in_use) {
    std::vector<lock::InspectCall> calls;
    for (const std::string& text : in_use) {
      auto name = lock::LockName::parse(text);
      if (!name || calls.size() == kMostNames) continue;
      calls.push_back({*std::move(name)});
      calls.back().holders_page = 1;
    }
    if (calls.empty()) return {};
    auto locks = finish(inspector_.inspect_all(calls));
    std::vector<std::string> names;
    for (size_t i = 0; locks && i < locks->size(); ++i) {
      const auto& lock = (*locks)[i];
      if (lock && !lock->holders.empty()) names.push_back(calls[i].name.text());
    }
    return names;
  }

  lock::LockInspector& inspector_;
  const bool only_held_;
  lock::SystemPoller poller_;
  const TimePoint deadline_ = poller_.now() + kRequestTimeout;
};

// `words` are those typed before the name, which may set the server and the prefix. Errors are not
// printed: they would garble the line that is being completed.
int print_names(std::span<const std::string> words) {
  exit_silently_after(kTotalTimeout);
  auto command_line = parse(words);
  auto* invocation = command_line ? std::get_if<Invocation>(&*command_line) : nullptr;
  if (invocation == nullptr) return kSuccess;
  auto configured = apply_config(*invocation, system_getenv, default_config_files(system_getenv));
  if (!configured) return kSuccess;
  // A TAB runs no program of the user's, which would go on after the time limit.
  if (invocation->choices.has(Opt::password_command)) return kSuccess;
  auto settings = connection_options(invocation->choices, system_getenv);
  if (!settings) return kSuccess;
  settings->connect_timeout = kRequestTimeout;
  settings->local_start = redis::LocalStart::forbidden;
  auto make_server = redis::open(*settings);
  if (!make_server) return kSuccess;
  std::string lines;
  auto server = (*make_server)();
  NameReader reader(*server, invocation->command == CommandId::force_unlock);
  for (const std::string& name : reader.read()) lines += name + "\n";
  return print_result(lines);
}

std::string read_standard_input() {
  std::string text;
  char buffer[4096];
  while (true) {
    ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

// The committed files: a completion script, or the manual page whose template is on stdin.
int generate(std::string_view what) {
  if (auto script = completion_script(what)) return print_result(*script);
  auto page =
      what == "man" ? manual_page(read_standard_input(), redis::least_acl("rlock:")) : std::nullopt;
  if (page) return print_result(*page);
  print_message("usage: rlock --generate bash|zsh|fish, or rlock --generate man <TEMPLATE");
  return kUsage;
}

Error bad_shell(const std::string& what) {
  return usage(what + ": rlock completion bash|zsh|fish");
}

}  // namespace

Result<int> completion_command(const Invocation& invocation) {
  const auto& words = invocation.names;
  if (words.size() != 1 || invocation.after_dashes) return bad_shell("name a shell");
  if (auto script = completion_script(words.front())) return print_result(*script);
  return bad_shell("there is no completion script for " + quoted_word(words.front()));
}

std::optional<int> hidden_command(std::span<const std::string> words) {
  if (words.empty()) return std::nullopt;
  if (words.front() == "__complete") return print_names(words.subspan(1));
  if (words.front() == "--generate" && words.size() == 2) return generate(words[1]);
  return std::nullopt;
}

}  // namespace rlock::cli
