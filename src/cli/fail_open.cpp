#include "cli/fail_open.hpp"

#include <memory>
#include <utility>

#include "cli/connect.hpp"
#include "lock/no_store.hpp"

namespace rlock::cli {
namespace {

using run::EventKind;

// Tells what happens to the command, and of no lock that is not there.
class UnlockedObserver final : public run::Observer {
 public:
  explicit UnlockedObserver(RunObserver& told) : told_(told) {}
  void event(const run::Event& event) override {
    switch (event.kind) {
      case EventKind::acquired:
        return told_.event({EventKind::unlocked, event.at, {}, "no server answered (--fail-open)"});
      case EventKind::renewed:
      case EventKind::released:
        return;
      default:
        return told_.event(event);
    }
  }

 private:
  RunObserver& told_;
};

// RLOCK_HELD stays: what the runs around this one hold is still true. RLOCK_UNLOCKED says so to
// the command.
std::vector<std::string> without_lock(const run::Use& use) {
  return {"RLOCK_NAME",          "RLOCK_OWNER",
          "RLOCK_TOKEN",         "RLOCK_UNLOCKED=" + use.owner.text(),
          kPasswordVariables[0], kPasswordVariables[1]};
}

}  // namespace

bool unanswered(const run::Outcome& outcome) {
  const auto* error = std::get_if<util::Error>(&outcome);
  return error != nullptr && error->kind == util::ErrorKind::unavailable &&
         error->retry == util::Retry::later && error->answered == util::Answered::no;
}

run::Outcome run_unlocked(run::Plan plan, RunObserver& observer, run::Signals& signals) {
  plan.around.clear();
  plan.environment = without_lock;
  plan.on_lost = run::OnLost::ignore;
  plan.watchdog = lock::Watchdog::renew;
  plan.claim.min_hold = {};
  plan.unlocked = true;
  lock::NoStore store;
  UnlockedObserver unlocked(observer);
  return run::hold_and_run(
      std::move(plan), store, [] { return std::make_unique<lock::NoStore>(); }, unlocked, signals);
}

}  // namespace rlock::cli
