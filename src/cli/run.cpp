#include "run/run.hpp"

#include <unistd.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/fail_open.hpp"
#include "cli/format.hpp"
#include "cli/held.hpp"
#include "cli/run_observer.hpp"
#include "cli/run_settings.hpp"
#include "cli/session.hpp"
#include "cli/terminal.hpp"
#include "cli/verdict.hpp"
#include "run/ancestor.hpp"
#include "run/enter.hpp"

namespace rlock::cli {
namespace {

using util::BootClock;
using util::Millis;

util::Result<std::optional<EventLog>> open_log(const RunSettings& settings) {
  if (!settings.event_log) return std::optional<EventLog>();
  auto log = EventLog::open(*settings.event_log, settings.plan.claim);
  if (!log) return std::move(log).error();
  return std::optional<EventLog>(*std::move(log));
}

// Where RLOCK_HELD has the prefix of a native lock; none of those has a brace.
std::string foreign_prefix(redis::Format format) {
  return "{" + std::string(word_of(format)) + "}";
}

// Only a run that can be seen is known to hold its lease; and only to the same spelling of a server
// is what it does not hold sure to be lost, not merely somewhere else.
run::Outer outer_run(HeldRecord record, const HeldPlace& place) {
  constexpr Millis kToRenew{500};  // what a renewal that is due then may take
  const bool alike = record.place == place;
  const HeldBy& by = record.by;
  run::Outer outer{std::move(record.use)};
  outer.may_put_back = alike && run::is_live_ancestor(by.pid, by.at);
  const bool awaited = alike && !outer.may_put_back && by.renewing > Millis(0);
  if (awaited) outer.patience = by.renewing / 3 + kToRenew;
  return outer;
}

// `renewing`: what it was asked to renew.
HeldBy this_run(const run::Use& use, Millis renewing) {
  if (use.nested()) renewing = std::min(renewing, run::kLongestEntry);
  return {getpid(), BootClock::now(), renewing};
}

// What the runs around this one hold, and what the runs inside it will find.
void nest(run::Plan& plan, const Session& session, Reentry reentry) {
  const char* text = system_getenv("RLOCK_HELD");
  auto around = decode_held(text == nullptr ? "" : text);
  const bool native = session.format() == redis::Format::native;
  HeldPlace place{session.server(), native ? session.prefix() : foreign_prefix(session.format()),
                  plan.claim.name.text()};
  if (reentry == Reentry::enter) {
    for (HeldRecord& record : held_around(around, place)) {
      plan.around.push_back(outer_run(std::move(record), place));
    }
  }
  const bool renews = plan.watchdog == lock::Watchdog::renew;
  const Millis renewing = renews ? plan.claim.ttl : Millis(0);
  plan.environment = [around = std::move(around), place = std::move(place),
                      renewing](const run::Use& use) {
    // Without a value: not set, and not that of a run around this one.
    bool fenced = use.token.value != 0;
    return std::vector<std::string>{
        "RLOCK_NAME=" + place.name,
        "RLOCK_OWNER=" + use.owner.text(),
        fenced ? "RLOCK_TOKEN=" + std::to_string(use.token.value) : std::string("RLOCK_TOKEN"),
        "RLOCK_UNLOCKED",
        "RLOCK_HELD=" + encode_held(held_inside(around, {place, use, this_run(use, renewing)})),
        kPasswordVariables[0],
        kPasswordVariables[1]};
  };
}

// What a server that remembers the grant of `token` knows of the time after it.
lock::Since since_grant(const lock::Snapshot& seen, lock::Token token, lock::Limit limit) {
  if (token.value == 0 || seen.last_grant < token) return lock::Since::unknown;
  if (seen.last_grant == token) return lock::Since::nobody;
  return limit == lock::Limit::exclusive() ? lock::Since::another : lock::Since::unknown;
}

// A lease that ended in silence: who has the lock now or had it, where the server answers again.
void ask_who_took_it(run::LeaseEnd& lease, const lock::AcquireCall& claim,
                     const RunObserver& observer, const Session& session) {
  constexpr Millis kBound{1000};
  if (lease.told && lease.told->how != lock::LostHow::expired) return;
  auto store = session.make_store()();
  const auto ours = observer.holds_as();
  lock::SystemPoller poller;
  auto seen =
      lock::finish(poller, store->inspect({claim.name}), poller.now() + kBound, store->server());
  if (!seen) return;
  for (lock::Holder& holder : seen->holders) {
    bool own = ours && ours->text() == holder.owner;
    bool beside =
        claim.limit != lock::Limit::exclusive() && holder.limit != lock::Limit::exclusive();
    if (own || beside || holder.state == lock::HolderState::cooldown) continue;
    lease.told = lock::Lost{lock::LostHow::taken, std::move(holder), {}};
    return;
  }
  const lock::Since since = since_grant(*seen, observer.token(), claim.limit);
  (lease.told ? lease.told->since : lease.since) = since;
}

run::LeaseEnd* lost_lease(run::Outcome& outcome) {
  if (auto* lost = std::get_if<run::LeaseLost>(&outcome)) return &lost->lease;
  auto* ended = std::get_if<run::Ended>(&outcome);
  return ended != nullptr && ended->lost ? &*ended->lost : nullptr;
}

struct EndEvent {
  std::string_view operator()(const run::NotAcquired& without) const {
    if (std::holds_alternative<lock::Busy>(without.why)) return "skipped";
    if (std::holds_alternative<lock::TimedOut>(without.why)) return "timed-out";
    return std::holds_alternative<lock::Gone>(without.why) ? "removed" : "failed";
  }
  std::string_view operator()(const run::WaitSignaled&) const { return "interrupted"; }
  std::string_view operator()(const util::Error& error) const {
    return error.kind == util::ErrorKind::unavailable ? "unreachable" : "failed";
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

void log_end(RunObserver& observer, const run::Outcome& outcome, const std::string& detail) {
  std::string_view word = std::visit(EndEvent{}, outcome);
  if (!word.empty()) observer.finished(word, detail);
}

int conclude(const Verdict& verdict, Talk talk) {
  bool told =
      verdict.weight == Weight::error || (verdict.weight == Weight::notice && talk != Talk::errors);
  if (told) say(verdict.message);
  if (verdict.signal) run::die_by(*verdict.signal);
  return verdict.code;
}

// stdout belongs to the command: errors are not told there, not even with --json.
int refuse(const util::Error& error) {
  return fail(error, Choices{});
}

int hold(RunSettings settings, Session& session, run::Signals& signals, Talk talk,
         std::optional<EventLog> log) {
  run::Plan& plan = settings.plan;
  const lock::AcquireCall claim = plan.claim;
  const lock::LockName& name = claim.name;
  nest(plan, session, settings.reentry);
  RunContext context{name.text(),  session.server(), plan.argv.front(), settings.conflict_code,
                     plan.max_run, Millis(0),        session.format()};
  RunObserver observer(name, talk, std::move(log));

  const util::TimePoint start = BootClock::now();
  plan.limits.first_contact = session.connect_timeout();
  if (settings.wait) plan.limits.deadline = start + *settings.wait;
  run::Outcome outcome =
      run::hold_and_run(plan, session.store(), session.make_store(), observer, signals);
  if (settings.contact == Contact::fail_open && unanswered(outcome)) {
    observer.end();
    log_end(observer, outcome, std::get<util::Error>(outcome).text);
    say(unlocked_warning(std::get<util::Error>(outcome), context));
    context.unlocked = true;
    outcome = run_unlocked(std::move(plan), observer, signals);
  }
  observer.end();
  context.waited = std::chrono::duration_cast<Millis>(BootClock::now() - start);
  if (run::LeaseEnd* lease = lost_lease(outcome)) {
    ask_who_took_it(*lease, claim, observer, session);
  }
  const Verdict verdict = judge(outcome, context);
  log_end(observer, outcome, verdict.message);
  return conclude(verdict, talk);
}

}  // namespace

int run_command(const Invocation& invocation) {
  auto settings = run_settings(invocation, system_getenv);
  if (!settings) return refuse(settings.error());
  auto session = Session::open(invocation.choices);
  if (!session) return refuse(session.error());
  if (auto fit = session->fits(settings->plan.claim); !fit) return refuse(fit.error());
  auto log = open_log(*settings);
  if (!log) return refuse(log.error());
  auto signals = run::Signals::take();
  if (!signals) return refuse(signals.error());
  return hold(*std::move(settings), *session, *signals, talk_of(invocation.choices),
              *std::move(log));
}

}  // namespace rlock::cli
