#include "cli/commands/acquire_settings.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/renewal_notice.hpp"
#include "cli/commands/run_exit.hpp"
#include "cli/commands/run_observer.hpp"
#include "cli/commands/session.hpp"
#include "cli/output/console.hpp"
#include "cli/output/timestamp.hpp"
#include "run/background_renewer.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

Subject subject_of(const AcquireSettings& settings) {
  const lock::AcquireCall& claim = settings.plan.claim;
  return {claim.name.text(), claim.owner.text()};
}

Result<std::optional<run::BackgroundRenewer>> background_renewer_for(
    const AcquireSettings& settings, const Session& session, run::Signals& signals,
    const Choices& choices) {
  if (!settings.renew_while) return std::optional<run::BackgroundRenewer>();
  auto process = run::ProcessHandle::open(*settings.renew_while);
  if (!process) {
    return Error{process.error().kind, "--renew-while: " + process.error().text};
  }
  const NoticeSubject subject{settings.plan.claim.name.text(), session.server(), process->pid()};
  auto describe = [&](const run::Notice& notice) {
    return notice_line(notice, subject, choices.has(Opt::quiet));
  };
  TRY(auto background_renewer,
      run::BackgroundRenewer::start(settings.plan.claim, *std::move(process), session.make_server(),
                                    signals, describe));
  return std::optional(std::move(background_renewer));
}

std::optional<lock::Holder> holder_of(const run::RunOutcome& outcome) {
  const auto* not_acquired = std::get_if<run::NotAcquired>(&outcome);
  if (not_acquired == nullptr) return std::nullopt;
  if (const auto* busy = std::get_if<lock::Busy>(&not_acquired->why)) return busy->holder;
  const auto* late = std::get_if<lock::TimedOut>(&not_acquired->why);
  return late == nullptr ? std::nullopt : late->holder;
}

// Why there is no lock: as of a run that did not start.
int report_not_acquired(const run::RunOutcome& outcome, const MessageContext& context,
                        const Choices& choices) {
  if (const auto* error = std::get_if<Error>(&outcome)) {
    return fail(*error, choices, {context.name});
  }
  if (std::holds_alternative<run::LeaseLost>(outcome)) {
    return fail({ErrorKind::lost, "its lease ended before it could be used"}, choices,
                {context.name});
  }
  RunExit run_exit = to_exit(outcome, context);
  bool printed = run_exit.severity == Severity::error ||
                 (run_exit.severity == Severity::notice && !choices.has(Opt::quiet));
  if (printed) print_message(run_exit.message);
  if (run_exit.signal) run::die_by(*run_exit.signal);
  if (!choices.has(Opt::json)) return run_exit.code;
  const Error busy{ErrorKind::busy, run_exit.message};
  return print_result(error_json(busy, {context.name}, run_exit.code, holder_of(outcome)),
                      run_exit.code);
}

// Nobody knows the owner: the lock goes back.
int release_and_fail(Error error, const AcquireSettings& settings, Session& session,
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
  constexpr Millis kConfirmationWait{10};
  if (store.granted_everywhere(BootClock::now())) return true;
  lock::SystemPoller poller;
  poller.pause(BootClock::now() + kConfirmationWait);
  return store.granted_everywhere(BootClock::now());
}

int report_acquired(run::AcquiredLease acquired, const AcquireSettings& settings,
                    std::optional<run::BackgroundRenewer> background_renewer, Session& session,
                    const Choices& choices) {
  const lock::AcquireCall& claim = settings.plan.claim;
  if (background_renewer) {
    acquired.everywhere = granted_everywhere(session.store());
    auto handed_off = background_renewer->hand_off(acquired, claim.owner);
    if (!handed_off)
      return release_and_fail(std::move(handed_off).error(), settings, session, choices);
  }
  auto printed =
      print_or_fail(choices.has(Opt::json) ? acquire_json(claim, acquired.token, wall_clock())
                                           : claim.owner.text() + "\n");
  if (!printed) return release_and_fail(std::move(printed).error(), settings, session, choices);
  if (background_renewer) background_renewer->keep();
  return 0;
}

int acquire(AcquireSettings settings, Session& session, run::Signals& signals,
            const Choices& choices) {
  run::Plan& plan = settings.plan;
  auto background_renewer = background_renewer_for(settings, session, signals, choices);
  if (!background_renewer) return fail(background_renewer.error(), choices, subject_of(settings));

  const TimePoint start = BootClock::now();
  plan.limits.first_contact = session.connect_timeout();
  if (settings.waiting.wait) plan.limits.deadline = start + *settings.waiting.wait;
  RunObserver observer(plan.claim.name, verbosity_of(choices), std::nullopt);
  const int call_off = *background_renewer ? (*background_renewer)->fd() : -1;
  auto acquired = run::acquire_lock(plan, session.store(), observer, signals, call_off);
  observer.end();
  if (std::holds_alternative<run::CalledOff>(acquired)) {
    return fail((*background_renewer)->gone(), choices, subject_of(settings));
  }
  if (const auto* not_acquired = std::get_if<run::RunOutcome>(&acquired)) {
    MessageContext context{plan.claim.name.text(),
                           session.server(),
                           {},
                           settings.waiting.conflict_code,
                           std::nullopt,
                           Millis(0),
                           session.format()};
    context.waited = std::chrono::duration_cast<Millis>(BootClock::now() - start);
    return report_not_acquired(*not_acquired, context, choices);
  }
  return report_acquired(std::get<run::AcquiredLease>(acquired), settings,
                         *std::move(background_renewer), session, choices);
}

}  // namespace

int acquire_command(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto settings = acquire_settings(invocation);
  if (!settings) return fail(settings.error(), choices);
  auto session = Session::open(choices);
  if (!session) return fail(session.error(), choices);
  if (auto supported = session->check_supported(settings->plan.claim); !supported)
    return fail(supported.error(), choices);
  auto signals = run::Signals::take();
  if (!signals) return fail(signals.error(), choices);
  return acquire(*std::move(settings), *session, *signals, choices);
}

}  // namespace rlock::cli
