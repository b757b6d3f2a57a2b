#include "cli/settings/run_settings.hpp"

#include <unistd.h>

#include <algorithm>

#include "cli/options/values.hpp"
#include "cli/output/messages.hpp"
#include "cli/settings/claim_settings.hpp"
#include "cli/settings/once_settings.hpp"
#include "util/clock.hpp"

namespace rlock::cli {
namespace {

constexpr Millis kKillAfter{5000};  // at most; a sixth of the ttl where that is less
constexpr std::string_view kUsageLine = "rlock run NAME -- COMMAND [ARG...]";

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
    if (after) return usage("-c TEXT and a COMMAND cannot be used together");
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

Result<run::OnLost> on_lost_choice(const Choices& choices) {
  const std::string on_lost = choices.last(Opt::on_lost).value_or("terminate");
  if (on_lost == "terminate") return run::OnLost::terminate;
  if (on_lost == "ignore") return run::OnLost::ignore;
  return usage("--on-lost must be terminate or ignore, not " + in_quotes(on_lost));
}

// What ends the command early, and how.
struct Supervision {
  Millis ttl;
  Millis kill_after;
  std::optional<Millis> max_run;
  run::OnLost on_lost;
};

Result<Supervision> supervision_of(const Choices& choices) {
  TRY(auto given_ttl, ttl_choice(choices));
  TRY(auto kill_after, duration_choice(choices, Opt::kill_after));
  TRY(auto max_run, duration_choice(choices, Opt::max_run));
  TRY(auto on_lost, on_lost_choice(choices));
  if (max_run == Millis(0)) max_run.reset();  // no limit, as with timeout(1)
  const Millis ttl = given_ttl.value_or(kDefaultTtl);
  return Supervision{ttl, kill_after.value_or(std::min(kKillAfter, ttl / 6)), max_run, on_lost};
}

std::string ending_record(Record record, const std::string& why) {
  record.ending = why;
  return encode_record(record);
}

// All of the plan except what depends on the server or on the time.
run::Plan plan_for(lock::AcquireCall claim, std::vector<std::string> argv, const Record& record,
                   const Supervision& supervision, const Choices& choices) {
  const bool whole_tree = choices.has(Opt::wait_descendants);
  return {
      .claim = std::move(claim),
      .limits = {},
      .argv = std::move(argv),
      .environment = {},
      .record_ending = [record](const std::string& why) { return ending_record(record, why); },
      .kill_after = supervision.kill_after,
      .max_run = supervision.max_run,
      .on_lost = supervision.on_lost,
      .until = whole_tree ? run::ReleaseAfter::descendants : run::ReleaseAfter::command,
      .watchdog = choices.has(Opt::no_renew) ? lock::Watchdog::none : lock::Watchdog::renew,
      .contain = choices.has(Opt::contain),
  };
}

}  // namespace

Result<RunSettings> run_settings(const Invocation& invocation, Getenv getenv) {
  const Choices& choices = invocation.choices;
  TRY(auto name, name_of(invocation));
  TRY(auto argv, command_of(invocation, getenv));
  TRY(auto supervision, supervision_of(choices));
  const Record record = holder_record(getpid(), argv, choices, getenv);
  TRY(auto claim,
      claim_settings(std::move(name),
                     {supervision.ttl, lock::Responsive::run, encode_record(record)}, choices));
  TRY(claim.call.once, once_choice(choices, wall_seconds()));
  TRY_STATUS(check_once(choices, claim.call));
  TRY(auto done_code, exit_code_choice(choices, Opt::done_exit_code, 0));
  return RunSettings{
      .plan = plan_for(std::move(claim.call), std::move(argv), record, supervision, choices),
      .waiting = claim.waiting,
      .done_code = done_code,
      .event_log = choices.last(Opt::event_log),
      .report = choices.has(Opt::report),
      .reentry = choices.has(Opt::no_reentrant) ? Reentry::wait : Reentry::enter,
      .on_no_server = choices.has(Opt::fail_open) ? OnNoServer::fail_open : OnNoServer::fail,
  };
}

}  // namespace rlock::cli
