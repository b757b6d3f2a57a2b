#include "cli/acquire_settings.hpp"
#include "cli/commands.hpp"
#include "cli/renewal_notice.hpp"
#include "cli/run_observer.hpp"
#include "cli/session.hpp"
#include "cli/terminal.hpp"
#include "cli/timestamp.hpp"
#include "cli/verdict.hpp"
#include "run/attendant.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using util::BootClock;
using util::Error;
using util::Millis;
using util::Result;

Subject subject_of(const AcquireSettings& settings) {
  const lock::AcquireCall& claim = settings.plan.claim;
  return {claim.name.text(), claim.owner.text()};
}

Result<std::optional<run::Attendant>> attendant_for(const AcquireSettings& settings,
                                                    const Session& session, run::Signals& signals,
                                                    const Choices& choices) {
  if (!settings.renew_while) return std::optional<run::Attendant>();
  auto watched = run::Watched::open(*settings.renew_while);
  if (!watched) {
    return Error{watched.error().kind, "--renew-while: " + watched.error().text};
  }
  const RenewedWhile subject{settings.plan.claim.name.text(), session.server(), watched->pid()};
  auto describe = [&](const run::Notice& notice) {
    return notice_line(notice, subject, choices.has(Opt::quiet));
  };
  auto attendant = run::Attendant::start(settings.plan.claim, *std::move(watched),
                                         session.make_store(), signals, describe);
  if (!attendant) return std::move(attendant).error();
  return std::optional(*std::move(attendant));
}

std::optional<lock::Holder> holder_of(const run::Outcome& outcome) {
  const auto* without = std::get_if<run::NotAcquired>(&outcome);
  if (without == nullptr) return std::nullopt;
  if (const auto* busy = std::get_if<lock::Busy>(&without->why)) return busy->holder;
  const auto* late = std::get_if<lock::TimedOut>(&without->why);
  return late == nullptr ? std::nullopt : late->holder;
}

// Why there is no lock: as of a run that did not start.
int conclude(const run::Outcome& outcome, const RunContext& context, const Choices& choices) {
  if (const auto* error = std::get_if<Error>(&outcome)) {
    return fail(*error, choices, {context.name});
  }
  if (std::holds_alternative<run::LeaseLost>(outcome)) {
    return fail({util::ErrorKind::lost, "its lease ended before it could be used"}, choices,
                {context.name});
  }
  Verdict verdict = judge(outcome, context);
  bool told = verdict.weight == Weight::error ||
              (verdict.weight == Weight::notice && !choices.has(Opt::quiet));
  if (told) say(verdict.message);
  if (verdict.signal) run::die_by(*verdict.signal);
  if (!choices.has(Opt::json)) return verdict.code;
  const Error busy{util::ErrorKind::busy, verdict.message};
  return deliver(error_json(busy, {context.name}, verdict.code, holder_of(outcome)), verdict.code);
}

// Nobody knows the owner: the lock goes back.
int give_back(Error error, const AcquireSettings& settings, Session& session,
              const Choices& choices) {
  const lock::ReleaseCall call{settings.plan.claim.name, settings.plan.claim.owner};
  auto released = session.ask([&](auto& store) { return store.release(call); });
  error.text += released ? "; the lock was given back"
                         : "; the lock frees itself when its lease ends (" +
                               std::move(released).error().text + ")";
  return fail(error, choices, subject_of(settings));
}

// A quorum grants by majority: the others have the time of a round trip to confirm.
bool granted_everywhere(lock::LockStore& store) {
  constexpr Millis kStragglers{10};
  if (store.granted_everywhere(BootClock::now())) return true;
  lock::SystemPoller poller;
  poller.pause(BootClock::now() + kStragglers);
  return store.granted_everywhere(BootClock::now());
}

int hand_out(run::Taken taken, const AcquireSettings& settings,
             std::optional<run::Attendant> attendant, Session& session, const Choices& choices) {
  const lock::AcquireCall& claim = settings.plan.claim;
  if (attendant) {
    taken.everywhere = granted_everywhere(session.store());
    auto entrusted = attendant->entrust(taken, claim.owner);
    if (!entrusted) return give_back(std::move(entrusted).error(), settings, session, choices);
  }
  auto told = hand_over(choices.has(Opt::json) ? acquire_json(claim, taken.token, wall_clock())
                                               : claim.owner.text() + "\n");
  if (!told) return give_back(std::move(told).error(), settings, session, choices);
  if (attendant) attendant->keep();
  return 0;
}

int acquire(AcquireSettings settings, Session& session, run::Signals& signals,
            const Choices& choices) {
  run::Plan& plan = settings.plan;
  auto attendant = attendant_for(settings, session, signals, choices);
  if (!attendant) return fail(attendant.error(), choices, subject_of(settings));

  const util::TimePoint start = BootClock::now();
  plan.limits.first_contact = session.connect_timeout();
  if (settings.waiting.wait) plan.limits.deadline = start + *settings.waiting.wait;
  RunObserver observer(plan.claim.name, talk_of(choices), std::nullopt);
  const int call_off = *attendant ? (*attendant)->fd() : -1;
  auto taken = run::take_lock(plan, session.store(), observer, signals, call_off);
  observer.end();
  if (std::holds_alternative<run::CalledOff>(taken)) {
    return fail((*attendant)->gone(), choices, subject_of(settings));
  }
  if (const auto* without = std::get_if<run::Outcome>(&taken)) {
    RunContext context{plan.claim.name.text(),
                       session.server(),
                       {},
                       settings.waiting.conflict_code,
                       std::nullopt,
                       Millis(0),
                       session.format()};
    context.waited = std::chrono::duration_cast<Millis>(BootClock::now() - start);
    return conclude(*without, context, choices);
  }
  return hand_out(std::get<run::Taken>(taken), settings, *std::move(attendant), session, choices);
}

}  // namespace

int acquire_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = acquire_settings(invocation);
  if (!settings) return fail(settings.error(), choices);
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices);
  if (auto fit = session->fits(settings->plan.claim); !fit) return fail(fit.error(), choices);
  auto signals = run::Signals::take();
  if (!signals) return fail(signals.error(), choices);
  return acquire(*std::move(settings), *session, *signals, choices);
}

}  // namespace rlock::cli
