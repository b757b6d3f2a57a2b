#include "cli/dispatch.hpp"

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
    switch (invocation.command) {
      case CommandId::run:
        return run_command(invocation);
      case CommandId::acquire:
        return acquire_command(invocation);
      case CommandId::renew:
        return renew_command(invocation);
      case CommandId::release:
        return release_command(invocation);
      case CommandId::status:
        return status_command(invocation);
      case CommandId::queue:
        return queue_command(invocation);
      case CommandId::force_unlock:
        return force_unlock_command(invocation);
      case CommandId::close:
        return close_command(invocation);
      case CommandId::open:
        return open_command(invocation);
      case CommandId::watch:
        return watch_command(invocation);
      case CommandId::history:
        return history_command(invocation);
      case CommandId::forget:
        return forget_command(invocation);
      case CommandId::metrics:
        return metrics_command(invocation);
      case CommandId::check:
        return check_command(invocation);
      case CommandId::doctor:
        return doctor_command(invocation);
      case CommandId::config:
        return config_command(invocation);
      case CommandId::local:
        return local_command(invocation);
      case CommandId::completion:
        break;
    }
    return kInternal;
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
