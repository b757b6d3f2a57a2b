#include "cli/options/help.hpp"

#include <signal.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <vector>

#include "cli/options/exit_codes.hpp"
#include "cli/options/options.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

bool is_hole_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c == ' ' || c == '-' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

// Titles by Group.
constexpr std::string_view kGroups[] = {
    "Waiting for the lock",      "Running once", "Holders and lease",
    "Command and its processes", "Output",       "Storage"};
// Titles by Purpose.
constexpr std::string_view kPurposes[] = {"Hold a lock", "Look at locks", "Operate locks",
                                          "Set up rlock"};
constexpr size_t kWidth = 80;
constexpr size_t kHelpColumn = 29;

// Appends the words of `text`, wrapped; all lines but the first are indented by `column`.
void wrap(std::string& out, std::string_view text, size_t column) {
  size_t used = out.size() - (out.rfind('\n') + 1);
  bool first = true;
  while (!text.empty()) {
    const std::string_view word = util::take_until(text, ' ');
    if (!first && used + 1 + word.size() > kWidth) {
      out.append("\n").append(column, ' ');
      used = column;
    } else if (!first) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
    first = false;
  }
  out += '\n';
}

// The value after the spellings: ` DUR`, `[=N]`, or nothing.
std::string value_shown(const OptionRow& row, const std::string& metavar) {
  if (!row.takes_value()) return {};
  return row.value_optional ? "[=" + metavar + "]" : " " + metavar;
}

void add_option(std::string& out, const OptionRow& row, const OptionText& own) {
  std::string names = row.letter == '\0' ? "      " : "  ";
  names += util::joined(spellings(row), ", ") + value_shown(row, std::string(row.metavar));
  out += names;
  if (names.size() + 2 > kHelpColumn) {
    out.append("\n").append(kHelpColumn, ' ');
  } else {
    out += std::string(kHelpColumn - names.size(), ' ');
  }
  std::string text(own.help);
  if (!own.fallback.empty()) text += util::format(" (default: {})", own.fallback);
  if (!row.environment.empty()) text += util::format(" [env: {}]", row.environment);
  wrap(out, text, kHelpColumn);
}

std::string_view first_sentence(std::string_view text) {
  const size_t end = text.find(". ");
  return end == text.npos ? text : text.substr(0, end + 1);
}

struct OptionGroup {
  std::string_view title;
  std::vector<const OptionRow*> rows;
};

// The options of a command, without the general ones: in several groups if it has many options,
// else in one.
std::vector<OptionGroup> groups_of(CommandId command, HelpLength length) {
  const bool many = command == CommandId::run || command == CommandId::acquire;
  const bool in_groups = many && length == HelpLength::full;
  std::vector<OptionGroup> groups{{"Options", {}}};
  if (in_groups) {
    groups.clear();
    for (std::string_view title : kGroups) groups.push_back({title, {}});
  }
  for (const OptionRow& row : options()) {
    if (row.section != Section::command || !row.applies_to(command)) continue;
    if (length == HelpLength::brief && !row.common) continue;
    groups[in_groups ? static_cast<size_t>(row.group) : 0].rows.push_back(&row);
  }
  std::erase_if(groups, [](const OptionGroup& group) { return group.rows.empty(); });
  return groups;
}

void add_exit_codes(std::string& out) {
  for (const ExitCodeRow& row : exit_codes())
    out += util::format("  {:<5}{}\n", row.code, row.name);
}

bool is_general(const OptionRow& row) {
  return row.section == Section::general && row.on_command_line();
}

constexpr std::string_view kGeneralTitle =
    "\nConnection and general options (before or after the command word):\n";

std::string where_to_ask(std::string_view project) {
  const std::string place =
      project.empty()
          ? "Questions and bugs: the issues of the repository from which your rlock comes.\n"
          : util::format("Packages, questions, bugs and security: {}\n", project);
  return place + "Add what rlock version and rlock doctor print. BUGS in rlock(1) says more.\n";
}

// A hyphen in roff is \-, a minus sign, so that options can be copied from the page.
std::string roff_escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  return out;
}

// Text to be copied: a quote in roff is a typographic one, unless it is named.
std::string verbatim(std::string_view text) {
  std::string out;
  for (char c : roff_escaped(text)) out += c == '\'' ? "\\(aq" : std::string(1, c);
  return out;
}

std::string bold(std::string_view text) {
  return util::format("\\fB{}\\fR", roff_escaped(text));
}

// The option at the front of the text, such as --wait; empty if there is none.
std::string_view option_at(std::string_view text) {
  constexpr std::string_view kOptionCharacters = "-abcdefghijklmnopqrstuvwxyz";
  if (!text.starts_with("--") || text.size() < 3 || text[2] == '-' || text[2] == ' ') return {};
  return text.substr(0, text.find_first_not_of(kOptionCharacters));
}

// Text of the table as roff: options in bold, each sentence on a line of its own. No line of the
// table begins with a dot or a quote, which roff would read as a request.
std::string roff(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::string_view option = option_at(text);
    if (!option.empty()) {
      out += bold(option);
      text.remove_prefix(option.size());
      continue;
    }
    bool sentence_ends = text.size() > 2 && text.starts_with(". ") &&
                         (std::isupper(static_cast<unsigned char>(text[2])) || text[2] == '-' ||
                          text.substr(2).starts_with("rlock "));
    out += sentence_ends ? ".\n" : roff_escaped(text.substr(0, 1));
    text.remove_prefix(sentence_ends ? 2 : 1);
  }
  return out;
}

std::string italic(std::string_view text) {
  return util::format("\\fI{}\\fR", roff_escaped(text));
}

// A reference to the page of a command.
std::string page_of(const CommandRow& command) {
  return util::format(".BR rlock\\-{} (1)", roff_escaped(command.name));
}

// With a capital, which the texts of the table lack where they are phrases.
std::string as_sentence(std::string_view phrase) {
  std::string out(phrase);
  out.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(out.front())));
  return out;
}

// Whether the command has every option that the text names.
bool fits(std::string_view text, CommandId command) {
  for (; !text.empty(); text.remove_prefix(1)) {
    const std::string_view name = option_at(text);
    const OptionRow* row = name.empty() ? nullptr : find_option(name.substr(2));
    if (row != nullptr && !row->applies_to(command)) return false;
  }
  return true;
}

std::string option_heading(const OptionRow& row) {
  std::string out;
  for (const std::string& spelling : spellings(row)) {
    util::append(out, ", ", bold(spelling));
  }
  return out + value_shown(row, italic(row.metavar));
}

// A longer text of an earlier command is not repeated: the reader is sent to its page.
constexpr size_t kLongText = 120;

std::string item(const OptionRow& row, const OptionText& text, CommandId command) {
  std::string out = util::format(".TP\n{}\n{}", option_heading(row), roff(as_sentence(text.help)));
  if (!text.fallback.empty()) out += util::format(" (default: {})", roff(text.fallback));
  out += ".\n";
  if (text.same_as != nullptr && (text.manual.size() > kLongText || !fits(text.manual, command))) {
    out += page_of(*text.same_as) + "\nsays more.\n";
  } else if (!text.manual.empty()) {
    out += roff(text.manual) + "\n";
  }
  if (!row.environment.empty()) {
    out += util::format("Environment: {}.\n", roff_escaped(row.environment));
  }
  return out;
}

// A row of docs/options.tsv: the spellings, the version, and who needs the option.
std::string user_row(const OptionRow& row) {
  return util::format("{}\t{}\t{}\n", util::joined(spellings(row), ", "), row.since, row.needed_by);
}

// The lines of a command's usage: in bold what stays as it is, in italics what a user puts there.
std::string synopsis(const CommandRow& row) {
  constexpr std::string_view kCapitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view kOption = "-abcdefghijklmnopqrstuvwxyz";
  std::string out;
  for (std::string_view rest : util::split(row.usage, '\n')) {
    out += bold(util::format("rlock {}", util::take_until(rest, ' '))) + ' ';
    while (!rest.empty()) {
      const size_t name = std::min(rest.find_first_not_of(kCapitals), rest.size());
      const size_t option =
          rest.front() == '-' ? std::min(rest.find_first_not_of(kOption), rest.size()) : 0;
      const size_t size = std::max({name, option, size_t{1}});
      const std::string_view word = rest.substr(0, size);
      out += name > 0 ? italic(word) : option > 0 ? bold(word) : verbatim(word);
      rest.remove_prefix(size);
    }
    out += '\n';
  }
  return out;
}

constexpr std::string_view kExitStatus = "Exit status: ";

// The paragraphs of a command's --help, without that of the exit status.
std::string about(const CommandRow& row) {
  std::string out;
  for (std::string_view paragraph : util::split(row.about, '\n')) {
    if (paragraph.starts_with(kExitStatus)) continue;
    util::append(out, ".PP\n", roff(paragraph) + "\n");
  }
  return out;
}

std::string exit_status(const CommandRow& row) {
  std::string out;
  for (std::string_view paragraph : util::split(row.about, '\n')) {
    if (!paragraph.starts_with(kExitStatus)) continue;
    out = roff(as_sentence(paragraph.substr(kExitStatus.size()))) + "\n";
  }
  if (row.id == CommandId::check) return out;
  if (row.id == CommandId::run) {
    for (const ExitCodeRow& code : exit_codes()) {
      out += util::format(".TP\n.B {}\n{}\n", code.code, roff(code.name));
    }
  }
  return out + ".PP\nEXIT STATUS in\n.BR rlock (1)\nsays what each code of rlock means, and what " +
         "to do next.\n";
}

// The options of a command: its own, the general ones that mean something else here, and the names
// of the others.
std::string option_list(const CommandRow& command) {
  std::string out;
  const auto groups = groups_of(command.id, HelpLength::full);
  for (const auto& [title, rows] : groups) {
    if (groups.size() > 1) out += util::format(".SS \"{}\"\n", title);
    for (const OptionRow* row : rows) out += item(*row, text_for(*row, command.id), command.id);
  }
  std::string items, others;
  for (const OptionRow& row : options()) {
    if (!is_general(row) || !row.applies_to(command.id)) continue;
    const OptionText text = text_for(row, command.id);
    if (text.help != row.help) {
      items += item(row, text, command.id);
    } else {
      util::append(others, ", ", bold(spellings(row).back()));
    }
  }
  if (!items.empty()) items += ".PP\n";
  return out + ".SS \"Connection and general options\"\n" + items +
         ".BR rlock (1)\ndescribes those that mean the same for all commands: " + others + ".\n";
}

std::string examples(const CommandRow& row) {
  std::string out;
  for (std::string_view line : util::split(row.examples, '\n')) {
    out += verbatim(line) + "\n";
  }
  return out;
}

// The commands in their groups, each with its page.
std::string command_list() {
  std::string out;
  for (size_t purpose = 0; purpose < std::size(kPurposes); ++purpose) {
    out += util::format(".SS \"{}\"\n", kPurposes[purpose]);
    for (const CommandRow& row : commands()) {
      if (static_cast<size_t>(row.purpose) != purpose) continue;
      out += util::format(".TP\n{}\n{}.\n", page_of(row), roff(as_sentence(row.summary)));
    }
  }
  return out;
}

// The pages of the commands of the same group.
std::string related(const CommandRow& row) {
  std::string out;
  for (const CommandRow& other : commands()) {
    if (other.purpose == row.purpose && other.id != row.id) out += page_of(other) + ",\n";
  }
  return out;
}

}  // namespace

std::optional<std::string> fill_template(std::string_view source, const Holes& holes) {
  std::string out;
  while (true) {
    const size_t start = source.find('@');
    out += source.substr(0, start);
    if (start == source.npos) return out;
    source.remove_prefix(start + 1);
    const size_t end = source.find('@');
    // A shell's own @, as in "${words[@]}", is not a hole.
    if (end == source.npos || !is_hole_name(source.substr(0, end))) {
      out += '@';
      continue;
    }
    auto hole = holes.find(source.substr(0, end));
    if (hole == holes.end()) return std::nullopt;
    std::string_view text = hole->second;
    if (text.ends_with('\n')) text.remove_suffix(1);
    out += text;
    source.remove_prefix(end + 1);
  }
}

std::string general_help(HelpLength length, std::string_view project) {
  std::string out =
      "rlock holds a lock in Redis or Valkey while a command runs.\n\n"
      "Usage: rlock [connection options] COMMAND [options] ...\n\n"
      "Examples:\n"
      "  export RLOCK_URL=redis://db1\n"
      "  rlock run shop/nightly -- /usr/local/bin/backup\n"
      "  rlock status\n";
  for (size_t purpose = 0; purpose < std::size(kPurposes); ++purpose) {
    out += util::format("\n{}:\n", kPurposes[purpose]);
    for (const CommandRow& row : commands()) {
      if (static_cast<size_t>(row.purpose) != purpose) continue;
      out += util::format("  {:16}{}\n", row.name, row.summary);
    }
  }
  out +=
      "\nrlock version prints the version, and the form in which it stores locks.\n"
      "rlock help 69 explains an exit code, rlock help guarantees what rlock promises.\n"
      "rlock help --man shows rlock(1). Add the name of another page: a command, or\n"
      "recipes, guarantees, formats, protocol, stability or toml.\n";
  if (length == HelpLength::brief) {
    return out +
           "rlock COMMAND -h shows the common options of a command, --help all of them.\n"
           "rlock --help lists the connection options. See rlock(1), and rlock-recipes(7).\n" +
           where_to_ask(project);
  }
  out += kGeneralTitle;
  for (const OptionRow& row : options()) {
    if (is_general(row)) add_option(out, row, {row.help, row.fallback});
  }
  return out + "\n" + where_to_ask(project);
}

std::string command_help(CommandId command, HelpLength length) {
  const CommandRow& row = row_of(command);
  const bool brief = length == HelpLength::brief;
  std::string_view about = row.about;
  const std::string_view what_it_does = util::take_until(about, '\n');
  std::string out;
  wrap(out, brief ? first_sentence(what_it_does) : what_it_does, 0);
  out += "\n";
  const char* label = "Usage:";
  for (std::string_view line : util::split(row.usage, '\n')) {
    out += util::format("{} rlock {}\n", label, line);
    label = "      ";
  }
  out += "\nExamples:\n";
  for (std::string_view line : util::split(row.examples, '\n')) {
    out += util::format("  {}\n", line);
  }
  if (!brief) {
    for (std::string_view paragraph : util::split(about, '\n')) {
      out += "\n";
      wrap(out, paragraph, 0);
    }
    if (command == CommandId::run) add_exit_codes(out);
  }
  for (const auto& [title, rows] : groups_of(command, length)) {
    out += util::format("\n{}:\n", title);
    for (const OptionRow* own : rows) add_option(out, *own, text_for(*own, command));
  }
  out += brief ? "\n" : kGeneralTitle;
  for (const OptionRow& general : options()) {
    if (general.section != Section::general || !general.applies_to(command)) continue;
    if (!brief || general.common) add_option(out, general, text_for(general, command));
  }
  out += brief ? util::format("\nAll options: rlock {} --help\n", row.name)
               : util::format("\nThe manual: rlock help --man {}\n", row.name);
  return out;
}

std::string with_bold_headings(std::string_view help) {
  std::string out;
  bool paragraph_begins = true;
  while (!help.empty()) {
    const std::string_view line = util::take_until(help, '\n');
    const bool heading = paragraph_begins && line.ends_with(':') && line.front() != ' ';
    const std::string_view on = heading ? "\x1b[1m" : "", off = heading ? "\x1b[0m" : "";
    out += util::format("{}{}{}\n", on, line, off);
    paragraph_begins = line.empty();
  }
  return out;
}

std::string exit_code_help(std::optional<int> code) {
  std::string out;
  if (!code) {
    wrap(
        out,
        "rlock run exits with the code of the command, with 128+N if signal N killed it, or with "
        "one of those below. status -q, check and doctor also have codes from 0 to 3: their --help "
        "says what these mean.",
        0);
    out += "\nExit codes of rlock itself:\n";
    add_exit_codes(out);
    return out + "\nrlock help 69 says what 69 means, and what to do next.\n";
  }
  const auto rows = exit_codes();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one.code == *code; });
  if (row != rows.end()) {
    out = util::format("{}: {}\n\n", row->code, row->name);
    wrap(out, row->meaning, 0);
    out += "\nWhat to do: ";
    wrap(out, row->next, 0);
    return out;
  }
  constexpr int kSignals = 128, kMostSignals = 64;
  constexpr int kGreatestOfCheck = 3;
  std::string text =
      *code <= kGreatestOfCheck
          ? "the exit code of the command itself. status -q, check and doctor also have codes from "
            "0 to 3: their --help says what these mean."
          : "the exit code of the command itself, or one that --exit-code or -E chose.";
  if (*code == 0) {
    text =
        "success. The command succeeded, or its work was done before (--once, --once-per, "
        "--once-within).";
  } else if (*code > kSignals && *code <= kSignals + kMostSignals) {
    text =
        util::format("the command was {}, or it exited with this code itself. {}",
                     util::killed_by(*code - kSignals),
                     *code == kSignals + SIGKILL
                         ? "If no one sent KILL, the kernel may have run out of memory: read its "
                           "log."
                         : "rlock dies by the same signal as the command.");
  }
  wrap(out, util::format("{}: {}", *code, text), 0);
  return out;
}

std::string guarantees_help() {
  constexpr std::string_view kConditions[] = {
      "The clocks of hosts and servers run at about the same rate (within 1 %).",
      "No host freezes as a whole for longer than a lease and then continues.",
      "The server keeps each write that it has acknowledged. A failover may lose some, unless you "
      "use --replicas or several servers.",
  };
  constexpr std::string_view kPromises[] = {
      "rlock stops the command before the lease expires, even if the server hangs. If rlock itself "
      "is killed, its guard stops the command.",
      "Waiters acquire the lock in the order of their arrival. However a process dies, its lock is "
      "free when the lease expires.",
      "Each grant has a fencing token that is greater than all earlier ones, as long as the "
      "server's clock is right. A resource that rejects smaller tokens is safe even if a condition "
      "does not hold.",
  };
  std::string out;
  wrap(out,
       "Two commands never run at the same time under one exclusive lock, as long as three "
       "conditions hold:",
       0);
  for (std::string_view condition : kConditions) {
    out += "  - ";
    wrap(out, condition, 4);
  }
  for (std::string_view promise : kPromises) {
    out += '\n';
    wrap(out, promise, 0);
  }
  return out + "\nrlock-guarantees(7) has all promises and limits.\n";
}

std::optional<std::string> manual_page(std::string_view source, std::string_view acl_rule) {
  Holes holes{{"least ACL rule", roff_escaped(acl_rule)}, {"commands", command_list()}};
  for (const CommandRow& command : commands()) {
    const auto fill = [&](std::string_view hole, const std::string& text) {
      holes[util::format("{} {}", hole, command.name)] = text;
    };
    fill("summary",
         util::format("rlock\\-{} \\- {}", roff_escaped(command.name), roff(command.summary)));
    fill("synopsis", synopsis(command));
    fill("about", about(command));
    fill("options", option_list(command));
    fill("exit status", exit_status(command));
    fill("examples", examples(command));
    fill("related", related(command));
  }
  for (const ExitCodeRow& row : exit_codes()) {
    holes["exit status"] +=
        util::format(".TP\n.B {}\n{}\n{}\n", row.code, roff(row.meaning), roff(row.next));
  }
  for (const OptionRow& row : options()) {
    if (row.on_command_line()) holes["option users"] += user_row(row);
    if (!is_general(row)) continue;
    holes["general options"] += item(row, {row.help, row.fallback, row.manual}, CommandId::run);
  }
  return fill_template(source, holes);
}

}  // namespace rlock::cli
