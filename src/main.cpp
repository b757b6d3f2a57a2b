// The dispatcher: finds the command that the command line names, and runs it.
#include <unistd.h>

#include <exception>

#include "cli/commands/commands.hpp"
#include "cli/options/help.hpp"
#include "cli/output/console.hpp"
#include "cli/output/json.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/render.hpp"
#include "cli/settings/connect.hpp"
#include "cli/settings/resolve.hpp"
#include "run/signals.hpp"
#include "util/table.hpp"

namespace rlock::cli {
namespace {

struct CommandFunction {
  CommandId id;
  Result<Report> (*run)(const Invocation&);
};
constexpr CommandFunction kCommands[] = {
    {CommandId::run, run_command},
    {CommandId::acquire, acquire_command},
    {CommandId::renew, renew_command},
    {CommandId::release, release_command},
    {CommandId::status, status_command},
    {CommandId::queue, queue_command},
    {CommandId::watch, watch_command},
    {CommandId::force_unlock, force_unlock_command},
    {CommandId::close, close_command},
    {CommandId::open, open_command},
    {CommandId::history, history_command},
    {CommandId::forget, forget_command},
    {CommandId::metrics, metrics_command},
    {CommandId::check, check_command},
    {CommandId::doctor, doctor_command},
    {CommandId::config, config_command},
    {CommandId::stop_local, stop_local_command},
    {CommandId::completion, completion_command},
};
static_assert(util::rows_in_order<CommandId::completion>(kCommands, &CommandFunction::id));

Result<Report> run_invocation(Invocation& invocation) {
  if (invocation.command != CommandId::completion) {
    TRY(auto warnings, resolve(invocation, system_getenv, default_config_files(system_getenv)));
    print_warnings(warnings, invocation.choices);
    if (!invocation.choices.has(Opt::quiet)) {
      print_warnings(variable_warnings(environment_names()), invocation.choices);
    }
  }
  return kCommands[static_cast<size_t>(invocation.command)].run(invocation);
}

Report failed(const Error& error, std::optional<CommandId> command, const ExitCodes& codes = {}) {
  if (command == CommandId::check) return unknown_check(error);
  return failure(error, {}, kLongerConnect, codes);
}

// Prints help for a user who does not know what belongs on the command line.
int show_usage(const std::string& help) {
  write_stderr(shown_help(help, STDERR_FILENO), Millis(1000));
  return kUsage;
}

struct Dispatcher {
  int operator()(const Help& help) const {
    const std::string text = help.command ? command_help(*help.command, help.length)
                                          : general_help(help.length, RLOCK_PROJECT_URL);
    return print_result(shown_help(text, STDOUT_FILENO));
  }
  int operator()(const ExitCodeHelp& help) const { return print_result(exit_code_help(help.code)); }
  int operator()(const GuaranteesHelp&) const { return print_result(guarantees_help()); }
  int operator()(const ManualPage& page) const {
    const auto text = show_manual(page.file);
    return text ? print_result(*text) : print_error(text.error());
  }
  int operator()(const Version& version) const {
    const auto form = static_cast<uint64_t>(redis::stored_form());
    return print_result(version.json
                            ? version_json(RLOCK_VERSION, RLOCK_COMMIT, form)
                            : version_text(RLOCK_VERSION, RLOCK_COMMIT, form, RLOCK_PROJECT_URL));
  }
  int operator()(const NoCommand&) const {
    return show_usage(general_help(HelpLength::brief, RLOCK_PROJECT_URL));
  }
  int operator()(Invocation& invocation) const {
    auto report = run_invocation(invocation);
    if (!report) {
      report = failed(report.error(), invocation.command, chosen_codes(invocation.choices));
    }
    return print_report(*report, invocation.choices);
  }
};

int dispatch(const std::vector<std::string>& words) {
  if (auto code = hidden_command(words)) return *code;
  if (words == std::vector<std::string>{"run"}) {
    return show_usage(command_help(CommandId::run, HelpLength::brief));
  }
  auto command_line = parse(words);
  if (command_line) return std::visit(Dispatcher{}, *command_line);
  Choices choices;
  if (asks_for_json(words)) choices.set(Opt::json, {{kFlagValue}});
  return print_report(failed(command_line.error(), named_command(words)), choices);
}

int run_program(int argc, char** argv) {
  if (auto opened = run::open_standard_descriptors(); !opened) return print_error(opened.error());
  run::make_children_waitable();
  try {
    const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    hide_passwords({argv, static_cast<size_t>(argc)});
    // Messages and listings have one zone, so that their times can be compared.
    if (is_terminal(STDOUT_FILENO) && is_terminal(STDERR_FILENO)) show_times_in(Zone::local);
    return dispatch(words);
  } catch (const std::exception& error) {
    print_message(std::string("internal error: ") + error.what() +
                  "; please report it, as BUGS in rlock(1) says");
    return kInternal;
  }
}

}  // namespace
}  // namespace rlock::cli

// Nothing is buffered, so _exit() loses nothing, and it saves each run the 0.05 ms that destructors
// would take.
int main(int argc, char** argv) {
  _exit(rlock::cli::run_program(argc, argv));
}
