#include "cli/main.hpp"

#include <exception>

#include "cli/commands.hpp"
#include "cli/config.hpp"
#include "cli/exit_code.hpp"
#include "cli/help.hpp"
#include "cli/terminal.hpp"
#include "cli/version.hpp"
#include "run/signals.hpp"

namespace rlock::cli {
namespace {

// With run stdout belongs to the command: errors are not told there, not even with --json.
int refuse(const util::Error& error, const Invocation& invocation) {
  bool silent = invocation.command == CommandId::run;
  return fail(error, silent ? Choices{} : invocation.choices);
}

struct Fulfil {
  int operator()(const Help& help) const {
    return deliver(help.command ? command_help(*help.command) : general_help());
  }
  int operator()(const Version&) const { return deliver(std::string("rlock ") + kVersion + "\n"); }
  int operator()(const ShortHelp&) const {
    write_stderr(short_help(), util::Millis(1000));
    return kUsage;
  }
  int operator()(Invocation& invocation) const {
    if (invocation.command == CommandId::completion) return completion_command(invocation);
    auto configured = apply_config(invocation, system_getenv, default_config_files(system_getenv));
    if (!configured) return refuse(configured.error(), invocation);
    if (!invocation.choices.has(Opt::quiet)) {
      for (const std::string& warning : *configured) say(warning);
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
      case CommandId::history:
        return history_command(invocation);
      case CommandId::doctor:
        return doctor_command(invocation);
      case CommandId::completion:
        break;
    }
    return kInternal;
  }
};

int serve(const std::vector<std::string>& words) {
  if (auto code = hidden_command(words)) return *code;
  auto wish = parse(words);
  if (wish) return std::visit(Fulfil{}, *wish);
  Choices choices;
  if (asks_for_json(words)) choices.set(Opt::json, {"true"});
  return fail(wish.error(), choices);
}

}  // namespace

int main(int argc, char** argv) {
  run::open_standard_descriptors();
  try {
    return serve({argv + (argc > 0 ? 1 : 0), argv + argc});
  } catch (const std::exception& error) {
    say(std::string("internal error: ") + error.what());
    return kInternal;
  }
}

}  // namespace rlock::cli
