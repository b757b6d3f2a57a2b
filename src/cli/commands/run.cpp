#include <memory>
#include <utility>

#include "cli/commands/blocking_key.hpp"
#include "cli/commands/commands.hpp"
#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/view.hpp"
#include "cli/plan.hpp"
#include "cli/run_exit.hpp"
#include "cli/run_observer.hpp"
#include "cli/settings/run_settings.hpp"
#include "cli/ticket_file.hpp"
#include "lock/store.hpp"
#include "run/run.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// If the log cannot be opened, the run continues without it.
std::optional<EventLog> open_log(const RunSettings& settings, const Session& session) {
  if (!settings.event_log) return std::nullopt;
  const lock::AcquireCall& claim = settings.plan.claim;
  auto log = EventLog::open(*settings.event_log, claim, session.server());
  if (log) return *std::move(log);
  print_message(util::format("warning: {}: {}; no events of this run are written",
                             in_quotes(claim.name.text()), log.error().text));
  return std::nullopt;
}

// Only /proc shows processes that left the command's group, and only as the parent of orphans can
// rlock find them there. The kernel kills contained processes.
void warn_of_escapes(const run::Plan& plan, RunObserver& observer) {
  const bool seen = util::proc_is_ours();
  if (plan.contain != run::Contain::no || (seen && util::may_adopt_orphans())) return;
  observer.report(
      util::format(
          "warning: {}: {}: what the command starts in a session of its own may outlive the lease; "
          "rlock doctor checks this host",
          in_quotes(plan.claim.name.text()),
          seen ? "the kernel refuses PR_SET_CHILD_SUBREAPER"
               : "/proc is not mounted, or does not show this process"),
      Weight::error);
}

// Finds out what a server that remembers the grant of `token` knows about the time after it.
lock::LaterHolder since_grant(const lock::Snapshot& seen, lock::Token token, lock::Limit limit) {
  if (token.value == 0 || seen.last_grant < token) return lock::LaterHolder::unknown;
  if (seen.last_grant == token) return lock::LaterHolder::nobody;
  return limit == lock::Limit::exclusive() ? lock::LaterHolder::another
                                           : lock::LaterHolder::unknown;
}

// The lease expired while no server answered, or the server lost it: asks which owner holds the
// lock now, or has held it since.
void find_new_holder(run::LeaseEnd& lease, const lock::AcquireCall& claim,
                     const RunObserver& observer, const Session& session) {
  constexpr Millis kTimeout{1000};
  const bool forgotten = lease.reported && lease.reported->data_lost;
  if (lease.reported && !forgotten && lease.reported->how != lock::LostHow::expired) return;
  auto inspector = session.make_server()();
  const auto hold = observer.hold();
  lock::SystemPoller poller;
  auto seen = lock::finish(poller, inspector->inspect({claim.name}), poller.now() + kTimeout,
                           inspector->server());
  if (!seen) return;
  for (lock::Holder& holder : seen->holders) {
    bool own = hold && hold->owner && hold->owner->text() == holder.owner;
    bool beside =
        claim.limit != lock::Limit::exclusive() && holder.limit != lock::Limit::exclusive();
    if (own || beside || holder.state == lock::HolderState::cooldown) continue;
    lease.reported = lock::Lost{lock::LostHow::taken, std::move(holder), {}};
    lease.reported->data_lost = forgotten;
    return;
  }
  const lock::LaterHolder since =
      since_grant(*seen, hold ? hold->token : lock::Token{}, claim.limit);
  (lease.reported ? lease.reported->later_holder : lease.later_holder) = since;
}

run::LeaseEnd* lost_lease(run::RunOutcome& outcome) {
  auto* end = std::get_if<run::RunEnd>(&outcome);
  return end != nullptr && end->lost ? &*end->lost : nullptr;
}

// Whether no server answered at all, for --fail-open. A server that refuses, is not ready or has
// queued this run has answered: another run may hold the lock.
bool no_server_answered(const run::RunOutcome& outcome) {
  const auto* error = std::get_if<Error>(&outcome);
  return error != nullptr && error->kind == ErrorKind::unavailable &&
         error->retry == Retry::later && error->answered == Answered::no;
}

// Passes on what is about the command, but nothing about a lock, because none is held.
class UnlockedObserver final : public run::Observer {
 public:
  explicit UnlockedObserver(RunObserver& observer) : observer_(observer) {}
  void on(const run::Notification& notification) override { std::visit(*this, notification); }

  void operator()(const run::Event& event) const {
    switch (event.kind) {
      case run::EventKind::acquired:
        return observer_.on(
            run::Event{run::EventKind::unlocked, event.at, {}, "no server answered (--fail-open)"});
      case run::EventKind::released:
        return;
      default:
        return observer_.on(event);
    }
  }
  void operator()(const run::Unheeded& unheeded) const { observer_.on(unheeded); }
  void operator()(const run::Exempted& exempted) const { observer_.on(exempted); }
  void operator()(const run::Leftovers& left) const { observer_.on(left); }
  void operator()(const run::AwaitingReplicas&) const {}
  void operator()(const run::Suspending&) const {}
  void operator()(const run::RenewalsFail&) const {}
  void operator()(const run::RenewedAgain&) const {}
  void operator()(const run::ConnectedAgain&) const {}
  void operator()(const run::CannotStop&) const {}
  void operator()(const run::StillReleasing&) const {}

 private:
  RunObserver& observer_;
};

// RLOCK_HELD stays, because what it says about the outer runs is still true.
std::vector<std::string> environment_without_lock(const lock::HeldLock& held_lock) {
  return {"RLOCK_NAME",
          "RLOCK_OWNER",
          "RLOCK_TOKEN",
          "RLOCK_SLOT",
          "RLOCK_WAITED_MS",
          "RLOCK_UNLOCKED=" + held_lock.owner.text(),
          redis::kPasswordVariables[0],
          redis::kPasswordVariables[1]};
}

// A store without a server: grants everything.
class NoStore final : public lock::LockStore {
 public:
  lock::InFlight<lock::AcquireReply> acquire(const lock::AcquireCall&) override {
    return lock::ready<lock::AcquireReply>({lock::Granted{}});
  }
  lock::InFlight<lock::RenewReply> renew(const lock::RenewCall&) override {
    return lock::ready<lock::RenewReply>({lock::Renewal::extended});
  }
  lock::InFlight<lock::ReleaseReply> release(const lock::ReleaseCall&) override {
    return lock::ready<lock::ReleaseReply>(lock::ReleaseReply{});
  }
  lock::InFlight<lock::CancelReply> cancel(const lock::CancelCall&) override {
    return lock::ready<lock::CancelReply>(lock::CancelReply::was_granted);
  }
  lock::InFlight<lock::Wake> wait_for_wake(const lock::LockName&, const lock::Owner&,
                                           Millis) override {
    return lock::ready<lock::Wake>(lock::Wake::slept);
  }
  std::string server() const override { return "no server"; }
};

// Runs the plan's command without the lock, but supervised like any other: signals, --max-run, exit
// code, event log.
run::RunOutcome run_unlocked(run::Plan plan, RunObserver& observer, run::Signals& signals) {
  plan.outer_runs.clear();
  plan.environment = environment_without_lock;
  plan.on_lost = run::OnLost::ignore;
  plan.watchdog = lock::Watchdog::none;
  plan.claim.min_hold = {};
  plan.claim.once.reset();
  plan.unlocked = true;
  NoStore store;
  UnlockedObserver unlocked(observer);
  return run::hold_and_run(plan, {store, [] { return std::make_unique<NoStore>(); }, {}}, unlocked,
                           signals);
}

int run_under_lock(const RunSettings& settings, Session& session, run::Signals& signals,
                   Verbosity verbosity, std::optional<EventLog> log,
                   const std::vector<std::string>& warnings, std::optional<TicketFile> ticket) {
  const Environment environment = present_environment();
  run::Plan plan = make_plan(settings, session, environment);
  if (ticket) plan.claim.ticket = ticket->ticket();
  const lock::AcquireCall& claim = plan.claim;
  const lock::LockName& name = claim.name;
  MessageContext context{settings, session};
  RunObserver observer(name, verbosity, std::move(log), service_manager());

  for (const std::string& warning : warnings) observer.report(warning, Weight::error);
  warn_of_escapes(plan, observer);
  observer.begin_wait(plan, session, signals, environment.now);
  observer.after_wait([&ticket] { ticket.reset(); });
  run::RunOutcome outcome = run::hold_and_run(
      plan, {session.store(), session.make_server(), session.make_server()}, observer, signals);
  if (settings.fail_open && no_server_answered(outcome)) {
    observer.finish_output();
    const Error& error = std::get<Error>(outcome);
    observer.report_attempt_end(to_exit(outcome, context).event, error.text);
    observer.report(unlocked_warning(error, context), Weight::error);
    context.unlocked = true;
    outcome = run_unlocked(plan, observer, signals);
  }
  const TimePoint end = BootClock::now();  // before rlock waits for stderr
  if (std::holds_alternative<run::WaitSignaled>(outcome)) observer.keep_line();
  observer.finish_output();
  context.waited = std::chrono::duration_cast<Millis>(end - environment.now);
  const auto hold = observer.hold();
  context.ran = std::chrono::duration_cast<Millis>(end - (hold ? hold->at : end));
  if (run::LeaseEnd* lease = lost_lease(outcome)) {
    find_new_holder(*lease, claim, observer, session);
  }
  context.keeps_position = keep_position(ticket, outcome, verbosity);
  mark_died(outcome, name, session);
  context.slots = slots_held(outcome, claim.limit, name, session);
  context.blocking_key = blocking_key_hint(outcome, session, name);
  RunExit run_exit = to_exit(outcome, context);
  if (!run_exit.event.empty()) observer.report_attempt_end(run_exit.event, run_exit.message);
  if (observer.prints_events()) {
    const bool is_logged = !run_exit.event.empty() || run_exit.severity != run::Severity::error;
    if (!is_logged) observer.report(run_exit.message, Weight::error);
    run_exit.severity = run::Severity::silent;
  }
  observer.finish_log();
  return report_exit(run_exit, verbosity);
}

}  // namespace

Result<Report> run_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto settings, run_settings(invocation, system_getenv));
  print_warnings(settings.warnings, choices);
  std::vector<std::string> warnings;
  TRY(auto session, Session::open(choices, warnings));
  TRY_STATUS(session.check(settings.plan.claim));
  auto log = open_log(settings, session);
  const Verbosity verbosity = verbosity_of(choices);
  TRY(auto signals, run::Signals::take());
  TRY(auto ticket, open_ticket(settings, session, verbosity));
  return Report{.code = run_under_lock(settings, session, signals, verbosity, std::move(log),
                                       warnings, std::move(ticket))};
}

}  // namespace rlock::cli
