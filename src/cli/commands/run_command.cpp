#include "run/run.hpp"

#include <unistd.h>

#include <algorithm>

#include "cli/commands/commands.hpp"
#include "cli/commands/fail_open.hpp"
#include "cli/commands/held_locks.hpp"
#include "cli/commands/run_exit.hpp"
#include "cli/commands/run_observer.hpp"
#include "cli/commands/session.hpp"
#include "cli/output/console.hpp"
#include "cli/settings/format.hpp"
#include "cli/settings/run_settings.hpp"
#include "lock/timing.hpp"
#include "run/ancestor.hpp"
#include "run/reentry.hpp"

namespace rlock::cli {
namespace {

Result<std::optional<EventLog>> open_log(const RunSettings& settings) {
  if (!settings.event_log) return std::optional<EventLog>();
  TRY(auto log, EventLog::open(*settings.event_log, settings.plan.claim));
  return std::optional<EventLog>(std::move(log));
}

// Where RLOCK_HELD has the prefix of a native lock; none of those has a brace.
std::string external_prefix(redis::Format format) {
  return "{" + std::string(to_string(format)) + "}";
}

// Only a run that can be seen is known to hold its lease; and only to the same spelling of a server
// is what it does not hold sure to be lost, not merely somewhere else.
run::OuterRun outer_run(HeldRecord record, const LockAddress& address) {
  constexpr Millis kToRenew{500};  // what a renewal that is due then may take
  const bool same_server = record.address == address;
  const HolderProcess& process = record.process;
  run::OuterRun outer{std::move(record.held_lock)};
  outer.may_put_back = same_server && run::is_live_ancestor(process.pid, process.at);
  const bool awaited = same_server && !outer.may_put_back && process.renewing > Millis(0);
  if (awaited) outer.put_back_grace = process.renewing / 3 + kToRenew;
  return outer;
}

// `renewing`: what it was asked to renew.
HolderProcess own_process(const run::HeldLock& held_lock, Millis renewing) {
  if (held_lock.nested()) renewing = std::min(renewing, timing::kLongestNestedLease);
  return {getpid(), BootClock::now(), renewing};
}

// What the runs around this one hold, and what the runs inside it will find.
void set_reentry(run::Plan& plan, const Session& session, Reentry reentry) {
  const char* text = system_getenv("RLOCK_HELD");
  auto outer_runs = decode_held(text == nullptr ? "" : text);
  const bool native = session.format() == redis::Format::native;
  LockAddress address{session.server(),
                      native ? session.prefix() : external_prefix(session.format()),
                      plan.claim.name.text()};
  if (reentry == Reentry::enter) {
    for (HeldRecord& record : find_outer_locks(outer_runs, address)) {
      plan.outer_runs.push_back(outer_run(std::move(record), address));
    }
  }
  const bool renews = plan.watchdog == lock::Watchdog::renew;
  const Millis renewing = renews ? plan.claim.ttl : Millis(0);
  plan.environment = [outer_runs = std::move(outer_runs), address = std::move(address),
                      renewing](const run::HeldLock& held_lock) {
    // Without a value: not set, and not that of a run around this one.
    bool fenced = held_lock.token.value != 0;
    return std::vector<std::string>{
        "RLOCK_NAME=" + address.name,
        "RLOCK_OWNER=" + held_lock.owner.text(),
        fenced ? "RLOCK_TOKEN=" + std::to_string(held_lock.token.value)
               : std::string("RLOCK_TOKEN"),
        "RLOCK_UNLOCKED",
        "RLOCK_HELD=" + encode_held(records_for_command(
                            outer_runs, {address, held_lock, own_process(held_lock, renewing)})),
        kPasswordVariables[0],
        kPasswordVariables[1]};
  };
}

// What a server that remembers the grant of `token` knows of the time after it.
lock::LaterHolder since_grant(const lock::Snapshot& seen, lock::Token token, lock::Limit limit) {
  if (token.value == 0 || seen.last_grant < token) return lock::LaterHolder::unknown;
  if (seen.last_grant == token) return lock::LaterHolder::nobody;
  return limit == lock::Limit::exclusive() ? lock::LaterHolder::another
                                           : lock::LaterHolder::unknown;
}

// A lease that ended in silence: who has the lock now or had it, where the server answers again.
void find_new_holder(run::LeaseEnd& lease, const lock::AcquireCall& claim,
                     const RunObserver& observer, const Session& session) {
  constexpr Millis kBound{1000};
  if (lease.reported && lease.reported->how != lock::LostHow::expired) return;
  auto inspector = session.make_server()();
  const auto ours = observer.held_owner();
  lock::SystemPoller poller;
  auto seen = lock::finish(poller, inspector->inspect({claim.name}), poller.now() + kBound,
                           inspector->server());
  if (!seen) return;
  for (lock::Holder& holder : seen->holders) {
    bool own = ours && ours->text() == holder.owner;
    bool beside =
        claim.limit != lock::Limit::exclusive() && holder.limit != lock::Limit::exclusive();
    if (own || beside || holder.state == lock::HolderState::cooldown) continue;
    lease.reported = lock::Lost{lock::LostHow::taken, std::move(holder), {}};
    return;
  }
  const lock::LaterHolder since = since_grant(*seen, observer.token(), claim.limit);
  (lease.reported ? lease.reported->since : lease.since) = since;
}

run::LeaseEnd* lost_lease(run::RunOutcome& outcome) {
  if (auto* lost = std::get_if<run::LeaseLost>(&outcome)) return &lost->lease;
  auto* ended = std::get_if<run::Ended>(&outcome);
  return ended != nullptr && ended->lost ? &*ended->lost : nullptr;
}

struct EndEventName {
  std::string_view operator()(const run::NotAcquired& not_acquired) const {
    if (std::holds_alternative<lock::Busy>(not_acquired.why)) return "skipped";
    if (std::holds_alternative<lock::TimedOut>(not_acquired.why)) return "timed-out";
    return std::holds_alternative<lock::OwnerEnded>(not_acquired.why) ? "removed" : "failed";
  }
  std::string_view operator()(const run::WaitSignaled&) const { return "interrupted"; }
  std::string_view operator()(const Error& error) const {
    return error.kind == ErrorKind::unavailable ? "unreachable" : "failed";
  }
  std::string_view operator()(const run::LeaseLost& lost) const {
    return lost.never_started ? "failed" : "";
  }
  std::string_view operator()(const run::CannotExec&) const { return "failed"; }
  std::string_view operator()(const run::Unprotected&) const { return "failed"; }
  // Of what did run the events tell already.
  template <class Ran>
  std::string_view operator()(const Ran&) const {
    return {};
  }
};

void log_end(RunObserver& observer, const run::RunOutcome& outcome, const std::string& detail) {
  std::string_view event_name = std::visit(EndEventName{}, outcome);
  if (!event_name.empty()) observer.log_attempt_end(event_name, detail);
}

int report_exit(const RunExit& run_exit, Verbosity verbosity) {
  bool reported = run_exit.severity == Severity::error ||
                  (run_exit.severity == Severity::notice && verbosity != Verbosity::quiet);
  if (reported) print_message(run_exit.message);
  if (run_exit.signal) run::die_by(*run_exit.signal);
  return run_exit.code;
}

// stdout belongs to the command: errors are not told there, not even with --json.
int fail_on_stderr(const Error& error) {
  return fail(error, Choices{});
}

int run_under_lock(RunSettings settings, Session& session, run::Signals& signals,
                   Verbosity verbosity, std::optional<EventLog> log) {
  run::Plan& plan = settings.plan;
  const lock::AcquireCall claim = plan.claim;
  const lock::LockName& name = claim.name;
  set_reentry(plan, session, settings.reentry);
  MessageContext context{name.text(),  session.server(), plan.argv.front(), settings.conflict_code,
                         plan.max_run, Millis(0),        session.format()};
  RunObserver observer(name, verbosity, std::move(log));

  const TimePoint start = BootClock::now();
  plan.limits.first_contact = session.connect_timeout();
  if (settings.wait) plan.limits.deadline = start + *settings.wait;
  run::RunOutcome outcome = run::hold_and_run(
      plan, {session.store(), session.make_server(), session.make_server()}, observer, signals);
  if (settings.on_no_server == OnNoServer::fail_open && no_server_answered(outcome)) {
    observer.end();
    log_end(observer, outcome, std::get<Error>(outcome).text);
    print_message(unlocked_warning(std::get<Error>(outcome), context));
    context.unlocked = true;
    outcome = run_unlocked(std::move(plan), observer, signals);
  }
  observer.end();
  context.waited = std::chrono::duration_cast<Millis>(BootClock::now() - start);
  if (run::LeaseEnd* lease = lost_lease(outcome)) {
    find_new_holder(*lease, claim, observer, session);
  }
  const RunExit run_exit = to_exit(outcome, context);
  log_end(observer, outcome, run_exit.message);
  return report_exit(run_exit, verbosity);
}

}  // namespace

int run_command(const Invocation& invocation) {
  auto settings = run_settings(invocation, system_getenv);
  if (!settings) return fail_on_stderr(settings.error());
  auto session = Session::open(invocation.choices);
  if (!session) return fail_on_stderr(session.error());
  if (auto supported = session->check_supported(settings->plan.claim); !supported)
    return fail_on_stderr(supported.error());
  auto log = open_log(*settings);
  if (!log) return fail_on_stderr(log.error());
  auto signals = run::Signals::take();
  if (!signals) return fail_on_stderr(signals.error());
  return run_under_lock(*std::move(settings), *session, *signals, verbosity_of(invocation.choices),
                        *std::move(log));
}

}  // namespace rlock::cli
