#include "run/run.hpp"

#include <algorithm>

#include "run/enter.hpp"
#include "run/holding.hpp"
#include "run/take.hpp"

namespace rlock::run {
namespace {

// Makes `plan` that of an entry, where the lock is entered. nullopt: nobody around us holds it.
std::optional<std::variant<Entered, Outcome>> take_inside(Plan& plan, lock::LockStore& store,
                                                          Observer& observer, Signals& signals) {
  Plan inside = plan;
  inside.claim.ttl = std::min(plan.claim.ttl, kLongestEntry);
  lock::SystemPoller poller(signals.fd());
  auto result = enter(inside, store, poller, observer);
  if (!result) return Outcome(std::move(result).error());
  if (std::holds_alternative<Outdated>(*result)) return std::nullopt;
  if (auto* upgrade = std::get_if<lock::Upgrade>(&*result)) return Outcome(NotAcquired{*upgrade});
  int signal = signals.next_number();
  auto* entered = std::get_if<Entered>(&*result);
  if (signal != 0 && entered != nullptr) leave(inside, entered->use, store, poller);
  if (signal != 0 || entered == nullptr) return Outcome(WaitSignaled{signal});
  plan = std::move(inside);
  const Use& use = entered->use;
  observer.event({EventKind::entered, util::BootClock::now(), use.token, {}, use.owner});
  return std::move(*entered);
}

}  // namespace

Outcome hold_and_run(Plan plan, lock::LockStore& store, const lock::MakeStore& make_store,
                     Observer& observer, Signals& signals) {
  auto state = map_shared_state();
  if (!state) return std::move(state).error();
  auto hold = [&](const Use& use, TimePoint granted_at) {
    return run_held({plan, use, granted_at, store, make_store, observer, signals, **state});
  };
  if (!plan.around.empty()) {
    if (auto inside = take_inside(plan, store, observer, signals)) {
      if (auto* without = std::get_if<Outcome>(&*inside)) return std::move(*without);
      const auto& entered = std::get<Entered>(*inside);
      return hold(entered.use, entered.sent_at);
    }
  }
  auto taken = take_lock(plan, store, observer, signals);
  if (auto* without = std::get_if<Outcome>(&taken)) return std::move(*without);
  const auto& got = std::get<Taken>(taken);
  return hold({plan.claim.owner, got.token, plan.claim.limit, plan.claim.min_hold}, got.granted_at);
}

}  // namespace rlock::run
