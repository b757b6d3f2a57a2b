#include "cli/settings/run_settings.hpp"

#include <algorithm>

#include "cli/options/values.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "cli/settings/claim_settings.hpp"
#include "cli/settings/mode_settings.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr Millis kKillAfter{5000};  // or a sixth of the ttl
constexpr std::string_view kUsageLine = "rlock run NAME -- COMMAND [ARG...]";

Error usage(std::string text) {
  return {ErrorKind::usage, std::move(text)};
}

Result<lock::LockName> name_of(const Invocation& invocation) {
  if (invocation.names.empty()) return usage("no lock name given: " + std::string(kUsageLine));
  if (invocation.names.size() > 1) {
    return usage("more than one lock name before --: " + in_quotes(invocation.names[1]) +
                 "; write " + std::string(kUsageLine));
  }
  return lock::LockName::parse(invocation.names.front());
}

Result<std::vector<std::string>> command_of(const Invocation& invocation, Getenv getenv) {
  const auto& after = invocation.after_dashes;
  if (auto text = invocation.choices.last(Opt::shell_text)) {
    if (after) return usage("-c TEXT and a COMMAND exclude each other");
    const char* shell = getenv("SHELL");
    bool usable = shell != nullptr && *shell != '\0';
    return std::vector<std::string>{usable ? shell : "/bin/sh", "-c", *text};
  }
  if (!after) return usage("no command given: " + std::string(kUsageLine));
  if (after->empty() || after->front().empty()) {
    return usage("the command after -- is empty: " + std::string(kUsageLine));
  }
  return *after;
}

Status set_wait(RunSettings& settings, const Choices& choices) {
  TRY(auto wait, wait_settings(settings.plan.claim, choices));
  settings.wait = wait.wait;
  settings.conflict_code = wait.conflict_code;
  return Done{};
}

Status set_times(run::Plan& plan, const Choices& choices) {
  TRY(auto ttl, ttl_choice(choices));
  plan.claim.ttl = ttl.value_or(plan.claim.ttl);

  TRY(auto kill_after, duration_choice(choices, Opt::kill_after));
  plan.kill_after = kill_after.value_or(std::min(kKillAfter, plan.claim.ttl / 6));

  auto max_run = duration_choice(choices, Opt::max_run);
  if (!max_run) return std::move(max_run).error();
  // As with timeout(1), 0 is no limit.
  if (max_run->value_or(Millis(0)) > Millis(0)) plan.max_run = **max_run;
  return Done{};
}

Status set_policies(RunSettings& settings, const Choices& choices) {
  std::string on_lost = choices.last(Opt::on_lost).value_or("terminate");
  if (on_lost != "terminate" && on_lost != "ignore") {
    return usage("--on-lost is terminate or ignore, not " + in_quotes(on_lost));
  }
  run::Plan& plan = settings.plan;
  plan.on_lost = on_lost == "ignore" ? run::OnLost::ignore : run::OnLost::terminate;
  plan.watchdog = choices.has(Opt::no_renew) ? lock::Watchdog::none : lock::Watchdog::renew;
  plan.until = choices.has(Opt::wait_descendants) ? run::ReleaseAfter::descendants
                                                  : run::ReleaseAfter::command;
  settings.reentry = choices.has(Opt::no_reentrant) ? Reentry::wait : Reentry::enter;
  settings.on_no_server = choices.has(Opt::fail_open) ? OnNoServer::fail_open : OnNoServer::fail;
  settings.event_log = choices.last(Opt::event_log);
  return Done{};
}

std::string ending_record(const std::string& text, const std::string& why) {
  Record record = decode_record(text);
  record.ending = why;
  return encode_record(record);
}

std::string record_of(const std::vector<std::string>& argv, const Choices& choices) {
  Record record = own_record();
  if (!choices.has(Opt::hide_command)) record.command = command_text(argv);
  if (auto reason = choices.last(Opt::reason)) record.reason = util::to_utf8(*reason);
  return encode_record(record);
}

run::Plan plan_for(const lock::LockName& name, std::vector<std::string> argv) {
  util::SystemRandom random;
  return {{name, lock::Owner::fresh(random)}, {}, std::move(argv), {}};
}

}  // namespace

Result<RunSettings> run_settings(const Invocation& invocation, Getenv getenv) {
  const Choices& choices = invocation.choices;
  TRY(auto name, name_of(invocation));
  TRY(auto argv, command_of(invocation, getenv));

  RunSettings settings{plan_for(name, std::move(argv))};
  TRY_STATUS(set_wait(settings, choices));
  TRY_STATUS(mode_settings(settings.plan.claim, choices));
  TRY_STATUS(set_times(settings.plan, choices));
  TRY_STATUS(set_policies(settings, choices));
  settings.plan.claim.responsive = lock::Responsive::run;
  settings.plan.claim.record = record_of(settings.plan.argv, choices);
  settings.plan.record_ending = [record = settings.plan.claim.record](const std::string& why) {
    return ending_record(record, why);
  };
  return settings;
}

}  // namespace rlock::cli
