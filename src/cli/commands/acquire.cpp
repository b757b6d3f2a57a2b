#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>

#include "cli/commands/blocking_key.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/values.hpp"
#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "cli/plan.hpp"
#include "cli/run_exit.hpp"
#include "cli/run_observer.hpp"
#include "cli/settings/run_settings.hpp"
#include "cli/ticket_file.hpp"
#include "run/background_renewer.hpp"
#include "run/run.hpp"
#include "util/duration.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

std::optional<pid_t> pid_choice(const Choices& choices) {
  const auto number = choices.number(Opt::renew_while);
  return number ? std::optional(static_cast<pid_t>(*number)) : std::nullopt;
}

// Rejects a process that exits together with the acquisition, which would release the lock before
// the caller uses it.
Status check_outlives_us(pid_t pid) {
  const bool is_rlock = pid == getpid();
  if (!is_rlock && !util::collects_our_output(pid)) return Done{};
  return usage(util::format(
      "--renew-while: process {} is {} and exits as soon as the owner id is read: use $$, the "
      "script itself, inside $( ) too; for a subshell: pid=$BASHPID; owner=$(rlock acquire ... "
      "--renew-while \"$pid\")",
      pid, is_rlock ? "rlock itself" : "only the substitution $( )"));
}

// There is no default, because a lease of a default length could expire in the middle of the steps.
Result<Millis> lease_length(const Choices& choices, std::optional<pid_t> renew_while) {
  const auto ttl = choices.duration(Opt::ttl);
  if (!ttl && !renew_while) {
    return usage("acquire needs --ttl DUR (longer than the steps take) or --renew-while PID");
  }
  return ttl.value_or(kDefaultTtl);
}

// The messages about a lock that is renewed while process `pid` lives. Each is an error.
class NoticeText {
 public:
  NoticeText(const std::string& name, const std::string& server, pid_t pid)
      : lock_(in_quotes(name) + " at " + util::printable(server)),
        process_("process " + std::to_string(pid)) {}

  std::string operator()(const run::LeaseEnd& end) const {
    return util::format("{} is no longer held: {}; the steps of {} run without the lock", lock_,
                        lease_end_text(end), process_);
  }

  std::string operator()(const run::Broken& broken) const {
    return util::format(
        "{}: {}; rlock does not stop the steps of {}: {}", lock_, lost_phrase(broken.how), process_,
        broken.left ? util::format("the next holder starts when that process exits, or in {}, when "
                                   "the lease expires",
                                   util::format_duration(*broken.left))
                    : "another holder may have the lock now");
  }

  std::string operator()(const run::EndedEarly& early) const {
    return util::format(
        "{}: rlock released the lock, because {} (--renew-while) exited {} after rlock had "
        "acquired it; later steps run without the lock: name a process that outlives them, such as "
        "$PPID",
        lock_, process_, util::format_duration(early.after));
  }

 private:
  const std::string lock_;
  const std::string process_;
};

Result<std::optional<run::BackgroundRenewer>> background_renewer_for(const RunSettings& settings,
                                                                     const run::Plan& plan,
                                                                     const Session& session,
                                                                     run::Signals& signals) {
  if (!settings.renew_while) return std::optional<run::BackgroundRenewer>();
  TRY_STATUS(check_outlives_us(*settings.renew_while));
  auto process = util::ProcessHandle::open(*settings.renew_while);
  if (!process) {
    return Error{process.error().kind, "--renew-while: " + process.error().text};
  }
  const NoticeText text(plan.claim.name.text(), session.server(), process->pid());
  auto describe = [&](const run::Notice& notice) {
    return message_line(std::visit(text, notice), Weight::error);
  };
  TRY(auto background_renewer,
      run::BackgroundRenewer::start(plan.claim, *std::move(process), session.make_server(), signals,
                                    describe));
  return std::optional(std::move(background_renewer));
}

// Reports why the lock was not acquired, as `run` does for a command that did not start.
Report report_not_acquired(const run::RunOutcome& outcome, const MessageContext& context,
                           Verbosity verbosity) {
  const Subject subject{context.name()};
  if (const auto* error = std::get_if<Error>(&outcome)) {
    Error explained = *error;
    explained.text += context.blocking_key;
    return failure(explained, subject, context.longer(), context.settings.waiting.codes);
  }
  if (run::cause_of(outcome) == run::RunCause::never_started) {
    return failure({ErrorKind::lost,
                    "the lease expired before rlock printed the owner id; try again, with a longer "
                    "--ttl if this happens often"},
                   subject);
  }
  const RunExit run_exit = to_exit(outcome, context);
  const int code = report_exit(run_exit, verbosity);
  const Error busy{ErrorKind::busy, run_exit.message};
  return {[=] {
            return error_json(busy, subject, {code, run_exit.kind, run_exit.obstacle});
          },
          {},
          code};
}

// Releases the lock, because the caller did not learn its owner id.
Error released_after(Error error, const run::Plan& plan, const lock::HeldLock& held_lock,
                     Session& session) {
  lock::ReleaseCall call{plan.claim.name, held_lock.owner};
  call.how = lock::ReleaseHow::unused;
  call.replicas = plan.claim.replicas;
  auto released = session.change([&](auto& store) { return store.release(call); });
  error.text += released ? "; the lock was released"
                         : util::format("; the lock is free when its lease expires ({})",
                                        released.error().text);
  return error;
}

// A quorum grants by majority; the other servers get the time of a round trip to confirm.
lock::GrantReach complete_grant(lock::LockStore& store) {
  constexpr Millis kConfirmationWait{10};
  auto completion = store.complete_grant();
  if (!completion) return lock::GrantReach::everywhere;
  lock::SystemPoller poller;
  auto reach = lock::finish(poller, std::move(completion), poller.now() + kConfirmationWait,
                            store.server(), lock::Interruptible::no);
  return reach ? *reach : lock::GrantReach::majority;
}

std::string lease_json(lock::AcquireCall claim, const lock::HeldLock& held_lock) {
  claim.owner = held_lock.owner;
  const auto age = std::chrono::duration_cast<Millis>(BootClock::now() - held_lock.granted_at);
  const Millis left = std::max(Millis(0), claim.ttl - age);
  return acquire_json(claim, held_lock.token, held_lock.slot, left, wall_clock());
}

Result<Report> report_acquired(const lock::HeldLock& held_lock, const run::Plan& plan,
                               std::optional<run::BackgroundRenewer> background_renewer,
                               Session& session, const Choices& choices) {
  const lock::GrantReach reach = complete_grant(session.store());
  if (background_renewer) {
    auto handed_off = background_renewer->hand_off(held_lock, reach);
    if (!handed_off) return released_after(handed_off.error(), plan, held_lock, session);
  }
  auto printed = print(
      choices.has(Opt::json) ? lease_json(plan.claim, held_lock) : held_lock.owner.text() + "\n",
      WithoutReader::error);
  if (!printed) return released_after(printed.error(), plan, held_lock, session);
  if (background_renewer) background_renewer->keep();
  return Report{};
}

Result<Report> acquire(const RunSettings& settings, Session& session, run::Signals& signals,
                       const Choices& choices) {
  const Environment environment = present_environment();
  run::Plan plan = make_plan(settings, session, environment);
  TRY(auto background_renewer, background_renewer_for(settings, plan, session, signals));
  TRY(const auto ticket, open_ticket(settings, session, verbosity_of(choices)));
  if (ticket) plan.claim.ticket = ticket->ticket();
  RunObserver observer(plan.claim.name, verbosity_of(choices), std::nullopt);
  observer.begin_wait(plan, session, signals, environment.now);
  const int call_off = background_renewer ? background_renewer->fd() : -1;
  auto acquired = run::acquire_lock(plan, session.store(), observer, signals, call_off);
  observer.finish_output();
  if (auto* not_acquired = std::get_if<run::RunOutcome>(&acquired)) {
    const auto* ended = std::get_if<run::WaitSignaled>(not_acquired);
    const bool called_off = ended != nullptr && ended->signal == 0;
    if (called_off && background_renewer) return background_renewer->gone();
    MessageContext context{settings, session};
    context.keeps_position = keep_position(ticket, *not_acquired, verbosity_of(choices));
    context.waited = std::chrono::duration_cast<Millis>(BootClock::now() - environment.now);
    mark_died(*not_acquired, plan.claim.name, session);
    context.slots = slots_held(*not_acquired, plan.claim.limit, plan.claim.name, session);
    context.blocking_key = blocking_key_hint(*not_acquired, session, plan.claim.name);
    return report_not_acquired(*not_acquired, context, verbosity_of(choices));
  }
  return report_acquired(std::get<lock::HeldLock>(acquired), plan, std::move(background_renewer),
                         session, choices);
}

}  // namespace

Result<RunSettings> acquire_settings(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto name, only_name(invocation));
  const auto renew_while = pid_choice(choices);
  TRY(auto ttl, lease_length(choices, renew_while));
  const pid_t pid = renew_while.value_or(getppid());
  const Record record = holder_record(pid, command_line_of(pid), choices, system_getenv);
  const auto responsive = renew_while ? lock::Responsive::yes : lock::Responsive::no;
  TRY(auto claim, claim_settings(std::move(name), ttl, responsive, encode_record(record), choices));
  return RunSettings{
      .plan = {.claim = std::move(claim.call), .limits = {}, .argv = {}, .environment = {}},
      .waiting = claim.waiting,
      .warnings = std::move(claim.warnings),
      .ticket = choices.last(Opt::ticket),
      .renew_while = renew_while};
}

Result<Report> acquire_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto settings, acquire_settings(invocation));
  print_warnings(settings.warnings, choices);
  TRY(auto session, Session::open(choices));
  TRY_STATUS(session.check(settings.plan.claim));
  TRY(auto signals, run::Signals::take());
  const Subject subject{settings.plan.claim.name.text(), settings.plan.claim.owner.text()};
  return reported(acquire(settings, session, signals, choices), subject, settings.waiting.codes);
}

}  // namespace rlock::cli
