#pragma once

#include <cstdint>
#include <span>
#include <string_view>

// Every command and every option is described once, here: the parser and --help read the same rows.
namespace rlock::cli {

enum class CommandId : uint8_t {
  run,
  acquire,
  renew,
  release,
  status,
  queue,
  force_unlock,
  history,
  doctor,
  completion
};

struct CommandRow {
  CommandId id;
  std::string_view name;
  std::string_view usage;     // lines, without the program's name
  std::string_view summary;   // for the list of commands
  std::string_view about;     // paragraphs, wrapped when shown
  std::string_view examples;  // lines, shown as they stand
};

// In the order of the options table.
enum class Opt : uint8_t {
  nonblock,
  wait,
  conflict_exit_code,
  shell_text,
  ttl,
  no_renew,
  max_run,
  kill_after,
  on_lost,
  min_hold,
  slots,
  shared,
  max_queue,
  no_reentrant,
  wait_descendants,
  format,
  fail_open,
  hide_command,
  renew_while,
  event_log,
  owner,
  token,
  all,
  now,
  remove,
  runs,
  yes,
  strict,
  reason,
  url,
  user,
  password_file,
  password_command,
  cacert,
  cacertdir,
  cert,
  key,
  sni,
  insecure,
  prefix,
  connect_timeout,
  config,
  json,
  quiet,
  verbose,
  help,
  version,
};
inline constexpr size_t kOptCount = static_cast<size_t>(Opt::version) + 1;

enum class Section : uint8_t { command, general };

struct OptionRow {
  Opt id;
  char letter;               // '\0': none
  std::string_view name;     // without the dashes; empty: the letter alone
  std::string_view metavar;  // empty: takes no value
  std::string_view environment;
  std::string_view fallback;  // the default, as --help shows it
  std::string_view help;
  unsigned commands;  // which commands take it: bits by CommandId
  Section section;

  bool takes_value() const { return !metavar.empty(); }
  bool applies_to(CommandId command) const {
    return (commands & (1U << static_cast<unsigned>(command))) != 0;
  }
};

// What --help and the manual say of an option under one command.
struct OptionText {
  std::string_view help;
  std::string_view fallback;
};

std::span<const CommandRow> commands();
const CommandRow& row_of(CommandId id);
const CommandRow* find_command(std::string_view name);

std::span<const OptionRow> options();
const OptionRow& row_of(Opt id);
OptionText text_for(const OptionRow& row, CommandId command);
const OptionRow* find_option(std::string_view name);
const OptionRow* find_option(char letter);

}  // namespace rlock::cli
