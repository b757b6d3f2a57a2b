#include "cli/dispatch.hpp"

#include <array>
#include <exception>

#include "cli/commands/commands.hpp"
#include "cli/options/help.hpp"
#include "cli/output/console.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/settings/config.hpp"
#include "cli/settings/connect.hpp"
#include "cli/version.hpp"
#include "run/signals.hpp"

namespace rlock::cli {
namespace {

int fail_early(const Error& error, const Invocation& invocation) {
  if (invocation.command == CommandId::check) return unknown_check(error);
  return fail(error, invocation.choices);
}

// In the order of CommandId.
constexpr std::array kCommandFunctions{
    run_command,     acquire_command, renew_command,        release_command, status_command,
    queue_command,   watch_command,   force_unlock_command, close_command,   open_command,
    history_command, forget_command,  metrics_command,      check_command,   doctor_command,
    config_command,  local_command,   completion_command};
static_assert(kCommandFunctions.size() == static_cast<size_t>(CommandId::completion) + 1);

struct Dispatcher {
  int operator()(const Help& help) const {
    return print_result(help.command ? command_help(*help.command, help.length)
                                     : general_help(help.length));
  }
  int operator()(const Version&) const {
    return print_result(std::string("rlock ") + kVersion + "\n");
  }
  int operator()(const NoCommand&) const {
    write_stderr(general_help(HelpLength::brief), Millis(1000));
    return kUsage;
  }
  int operator()(Invocation& invocation) const {
    if (invocation.command == CommandId::completion) return completion_command(invocation);
    auto configured = apply_config(invocation, system_getenv, default_config_files(system_getenv));
    if (!configured) return fail_early(configured.error(), invocation);
    if (!invocation.choices.has(Opt::quiet)) {
      for (const std::string& warning : *configured) print_message(warning);
    }
    return kCommandFunctions[static_cast<size_t>(invocation.command)](invocation);
  }
};

int dispatch(const std::vector<std::string>& words) {
  if (auto code = hidden_command(words)) return *code;
  auto command_line = parse(words);
  if (command_line) return std::visit(Dispatcher{}, *command_line);
  if (!words.empty() && words.front() == row_of(CommandId::check).name) {
    return unknown_check(command_line.error());
  }
  Choices choices;
  if (asks_for_json(words)) choices.set(Opt::json, {"true"});
  return fail(command_line.error(), choices);
}

}  // namespace

int run_program(int argc, char** argv) {
  run::open_standard_descriptors();
  try {
    const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    hide_passwords({argv, static_cast<size_t>(argc)});
    return dispatch(words);
  } catch (const std::exception& error) {
    print_message(std::string("internal error: ") + error.what());
    return kInternal;
  }
}

}  // namespace rlock::cli
