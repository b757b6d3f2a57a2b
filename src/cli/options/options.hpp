#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The only description of every command and option. The parser, --help, the manual pages, the table
// in rlock-stability(7) and the completion scripts are made from it. The rows are in commands.cpp
// and options.cpp.
namespace rlock::cli {

enum class CommandId : uint8_t {
  run,
  acquire,
  renew,
  release,
  status,
  queue,
  watch,
  force_unlock,
  close,
  open,
  history,
  forget,
  metrics,
  check,
  doctor,
  config,
  stop_local,
  completion
};

// Sets of commands, for the rows of the options.
constexpr unsigned bit(CommandId id) {
  return 1U << static_cast<unsigned>(id);
}
inline constexpr unsigned kEveryCommand = 2 * bit(CommandId::completion) - 1;

// What a command is for, in the order in which the help lists the groups.
enum class Purpose : uint8_t { hold, look, operate, set_up };

struct CommandHead {
  CommandId id;
  Purpose purpose;
  std::string_view name;
  std::string_view usage;    // lines, without the word rlock
  std::string_view summary;  // for the list of commands
};
struct CommandRow : CommandHead {
  std::string_view about;     // paragraphs, wrapped by --help
  std::string_view examples;  // lines, printed unchanged
};

// In the order of the rows in options.cpp.
enum class Opt : uint8_t {
  nonblock,
  wait,
  conflict_exit_code,
  exit_code,
  shell_text,
  ttl,
  no_renew,
  max_run,
  kill_after,
  stop_after,
  on_lost,
  min_hold,
  slots,
  shared,
  max_queue,
  ticket,
  once,
  once_per,
  once_within,
  max_failures,
  supersede,
  while_closed,
  urgent,
  wait_descendants,
  contain,
  format,
  fail_open,
  hide_command,
  renew_while,
  event_log,
  report,
  history_rows,
  owner,
  token,
  all,
  now,
  remove,
  first,
  runs,
  yes,
  strict,
  output,
  within,
  max_held,
  max_wait,
  max_waiters,
  critical,
  closed_for,
  until,
  replace,
  reason,
  url,
  user,
  password,
  password_file,
  password_command,
  cacert,
  cert,
  key,
  sni,
  insecure,
  prefix,
  connect_timeout,
  replicas,
  config,
  json,
  quiet,
  verbose,
  help,
  version,
};
inline constexpr size_t kOptCount = static_cast<size_t>(Opt::version) + 1;

enum class Section : uint8_t { command, general };

// The kind of an option's value, derived from its metavar.
enum class ValueKind : uint8_t { flag, text, word, number, duration };

// What rlock demands of a text. Cron, CI and containers often pass a variable that is empty, in
// quotes, or still the template's.
enum class Demand : uint8_t {
  undecided,  // no text
  free,       // nothing, or its parser says what is wrong
  given,      // not blank
  name,       // not blank, not in quotes, and no variable left in it
  url,        // the same of scheme, host and path, because a password may contain anything
};

// What an option of run or acquire is about, in the order in which the help lists the groups.
enum class Group : uint8_t { waiting, once, lease, processes, output, storage };

// Properties that only some options have.
struct OptionExtras {
  Group group = Group::waiting;
  char letter = '\0';
  bool value_optional = false;     // given without a value, or with it after an equals sign:
                                   // `--supersede`, `--supersede=7`
  std::string_view fallback = {};  // the default, as --help shows it
  std::string_view environment = {};
  bool common = false;    // -h lists it; --help lists all
  bool examples = false;  // the metavar lists only some of the valid words
  // Whether rlock.toml may set the option. A file applies to every run of a user or of a machine,
  // so such an option must not change which runs exclude each other, or what callers of rlock rely
  // on.
  bool in_file = false;
  uint64_t least = 0, most = UINT64_MAX;  // of a number, or a duration in ms
  Demand demand = Demand::undecided;      // on a text
  std::string_view since = "1.0";         // the version from which on the option exists
};
struct OptionHead : OptionExtras {
  Opt id;
  std::string_view name;     // without the dashes; empty: the option has only a letter
  std::string_view metavar;  // empty: takes no value
  // The section of rlock-recipes(7) that needs the option, or what people report (`report: …`),
  // because an option without a user is not added.
  std::string_view needed_by;
  unsigned commands;  // which commands take it: bits by CommandId
  Section section;
};
struct OptionRow : OptionHead {
  std::string_view help;         // a phrase without a full stop, for --help
  std::string_view manual = {};  // sentences for the page: when to use it, what it interacts with

  bool takes_value() const { return !metavar.empty(); }
  bool takes_next_word() const { return takes_value() && !value_optional; }
  bool applies_to(CommandId command) const { return (commands & bit(command)) != 0; }
  // False for a password: every user of the host can read the command line.
  bool on_command_line() const { return commands != 0; }
  // The metavar of a word lists the valid words: `native|plain|redisson`.
  constexpr ValueKind kind() const {
    if (metavar.empty()) return ValueKind::flag;
    if (metavar == "DUR") return ValueKind::duration;
    if (metavar == "N" || metavar == "PID") return ValueKind::number;
    return metavar.front() >= 'a' && !examples ? ValueKind::word : ValueKind::text;
  }
};

// The texts of --help and the manual about an option of one command.
struct OptionText {
  std::string_view help = {};
  std::string_view fallback = {};
  std::string_view manual = {};
  // Set if an earlier command has the option with the same texts.
  const CommandRow* same_as = nullptr;
};

std::span<const CommandRow> commands();
const CommandRow& row_of(CommandId id);
const CommandRow* find_command(std::string_view name);

std::span<const OptionRow> options();
const OptionRow& row_of(Opt id);
OptionText text_for(const OptionRow& row, CommandId command);
const OptionRow* find_option(std::string_view name);
const OptionRow* find_option(char letter);

// The spellings that the option has: `-w`, `--wait`.
std::vector<std::string> spellings(const OptionRow& row);

}  // namespace rlock::cli
