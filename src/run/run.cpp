#include "run/run.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "lock/timing.hpp"
#include "run/early_guard.hpp"
#include "run/reentry.hpp"
#include "run/run_held.hpp"
#include "run/take.hpp"

namespace rlock::run {
namespace {

// Makes `plan` that of an entry, where the lock is entered. nullopt: nobody around us holds it.
std::optional<std::variant<Entered, RunOutcome>> enter_held_lock(Plan& plan,
                                                                 const Connections& connections,
                                                                 Observer& observer,
                                                                 Signals& signals) {
  Plan inside = plan;
  inside.claim.ttl = std::min(plan.claim.ttl, timing::kLongestNestedLease);
  lock::SystemPoller poller(signals.fd());
  auto result = enter_outer_run(inside, connections, poller, observer);
  if (!result) return RunOutcome(std::move(result).error());
  if (std::holds_alternative<NoneHeld>(*result)) return std::nullopt;
  if (auto* upgrade = std::get_if<lock::Upgrade>(&*result))
    return RunOutcome(NotAcquired{*upgrade});
  int signal = signals.next_number();
  auto* entered = std::get_if<Entered>(&*result);
  if (signal != 0 && entered != nullptr)
    leave_outer_run(inside, entered->held_lock, connections.store, poller);
  if (signal != 0 || entered == nullptr) return RunOutcome(WaitSignaled{signal});
  if (plan.claim.once) {
    leave_outer_run(inside, entered->held_lock, connections.store, poller);
    return RunOutcome(Error{ErrorKind::usage,
                            "--once, --once-per and --once-within cannot be used inside a run that "
                            "holds the lock: give the option to that run"});
  }
  plan = std::move(inside);
  const HeldLock& held_lock = entered->held_lock;
  observer.event({EventKind::entered, BootClock::now(), held_lock.token, {}, held_lock.owner});
  return std::move(*entered);
}

}  // namespace

RunOutcome hold_and_run(Plan plan, const Connections& connections, Observer& observer,
                        Signals& signals) {
  TRY(auto state, map_shared_state());
  auto hold = [&](const HeldLock& held_lock, TimePoint granted_at, TimePoint asked_at,
                  std::unique_ptr<Guard> early) {
    return run_held({plan, held_lock, granted_at, asked_at, connections.store,
                     connections.make_store, observer, signals, *state, std::move(early)});
  };
  if (!plan.outer_runs.empty()) {
    if (auto inside = enter_held_lock(plan, connections, observer, signals)) {
      if (auto* without = std::get_if<RunOutcome>(&*inside)) return std::move(*without);
      const auto& entered = std::get<Entered>(*inside);
      return hold(entered.held_lock, entered.sent_at, entered.sent_at, nullptr);
    }
  }
  EarlyGuard early(plan, signals, *state);
  if (plan.contain) TRY_STATUS(early.contain());
  auto acquired = acquire_lock(plan, connections.store, observer, signals, -1, &early);
  if (auto* without = std::get_if<RunOutcome>(&acquired)) return std::move(*without);
  const auto& got = std::get<AcquiredLease>(acquired);
  return hold({.owner = plan.claim.owner,
               .token = got.token,
               .limit = plan.claim.limit,
               .min_hold = plan.claim.min_hold,
               .slot = got.slot,
               .waited = std::chrono::duration_cast<Millis>(got.granted_at - got.asked_at)},
              got.granted_at, got.asked_at, early.take());
}

}  // namespace rlock::run
