#include "cli/run_settings.hpp"

#include <algorithm>

#include "cli/claim_settings.hpp"
#include "cli/describe.hpp"
#include "cli/mode_settings.hpp"
#include "cli/record.hpp"
#include "cli/values.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using util::Error;
using util::ErrorKind;
using util::Millis;
using util::Result;
using util::Status;

constexpr Millis kKillAfter{5000};  // or a sixth of the ttl
constexpr std::string_view kForm = "rlock run NAME -- COMMAND [ARG...]";

Error usage(std::string text) {
  return {ErrorKind::usage, std::move(text)};
}

Result<lock::LockName> name_of(const Invocation& invocation) {
  if (invocation.names.empty()) return usage("no lock name given: " + std::string(kForm));
  if (invocation.names.size() > 1) {
    return usage("more than one lock name before --: " + in_quotes(invocation.names[1]) +
                 "; write " + std::string(kForm));
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
  if (!after) return usage("no command given: " + std::string(kForm));
  if (after->empty() || after->front().empty()) {
    return usage("the command after -- is empty: " + std::string(kForm));
  }
  return *after;
}

Status set_wait(RunSettings& settings, const Choices& choices) {
  auto wait = wait_settings(settings.plan.claim, choices);
  if (!wait) return std::move(wait).error();
  settings.wait = wait->wait;
  settings.conflict_code = wait->conflict_code;
  return util::Done{};
}

Status set_times(run::Plan& plan, const Choices& choices) {
  auto ttl = ttl_choice(choices);
  if (!ttl) return std::move(ttl).error();
  plan.claim.ttl = ttl->value_or(plan.claim.ttl);

  auto kill_after = duration_choice(choices, Opt::kill_after);
  if (!kill_after) return std::move(kill_after).error();
  plan.kill_after = kill_after->value_or(std::min(kKillAfter, plan.claim.ttl / 6));

  auto max_run = duration_choice(choices, Opt::max_run);
  if (!max_run) return std::move(max_run).error();
  // As with timeout(1), 0 is no limit.
  if (max_run->value_or(Millis(0)) > Millis(0)) plan.max_run = **max_run;
  return util::Done{};
}

Status set_conduct(RunSettings& settings, const Choices& choices) {
  std::string on_lost = choices.last(Opt::on_lost).value_or("terminate");
  if (on_lost != "terminate" && on_lost != "ignore") {
    return usage("--on-lost is terminate or ignore, not " + in_quotes(on_lost));
  }
  run::Plan& plan = settings.plan;
  plan.on_lost = on_lost == "ignore" ? run::OnLost::ignore : run::OnLost::terminate;
  plan.watchdog = choices.has(Opt::no_renew) ? lock::Watchdog::none : lock::Watchdog::renew;
  plan.until = choices.has(Opt::wait_descendants) ? run::Until::descendants : run::Until::command;
  settings.reentry = choices.has(Opt::no_reentrant) ? Reentry::wait : Reentry::enter;
  settings.contact = choices.has(Opt::fail_open) ? Contact::fail_open : Contact::needed;
  settings.event_log = choices.last(Opt::event_log);
  return util::Done{};
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
  auto name = name_of(invocation);
  if (!name) return std::move(name).error();
  auto argv = command_of(invocation, getenv);
  if (!argv) return std::move(argv).error();

  RunSettings settings{plan_for(*name, *std::move(argv))};
  if (auto ok = set_wait(settings, choices); !ok) return std::move(ok).error();
  if (auto ok = mode_settings(settings.plan.claim, choices); !ok) return std::move(ok).error();
  if (auto ok = set_times(settings.plan, choices); !ok) return std::move(ok).error();
  if (auto ok = set_conduct(settings, choices); !ok) return std::move(ok).error();
  settings.plan.claim.attended = lock::Attended::run;
  settings.plan.claim.record = record_of(settings.plan.argv, choices);
  return settings;
}

}  // namespace rlock::cli
