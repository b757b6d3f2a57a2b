#include "cli/commands/fail_open.hpp"

#include <memory>
#include <utility>

#include "cli/settings/connect.hpp"
#include "lock/no_store.hpp"

namespace rlock::cli {
namespace {

using run::EventKind;

// Tells what happens to the command, and of no lock that is not there.
class UnlockedObserver final : public run::Observer {
 public:
  explicit UnlockedObserver(RunObserver& observer) : observer_(observer) {}
  void event(const run::Event& event) override {
    switch (event.kind) {
      case EventKind::acquired:
        return observer_.event(
            {EventKind::unlocked, event.at, {}, "no server answered (--fail-open)"});
      case EventKind::renewed:
      case EventKind::released:
        return;
      default:
        return observer_.event(event);
    }
  }

 private:
  RunObserver& observer_;
};

// RLOCK_HELD stays: what the runs around this one hold is still true. RLOCK_UNLOCKED says so to
// the command.
std::vector<std::string> without_lock(const run::HeldLock& held_lock) {
  return {"RLOCK_NAME",          "RLOCK_OWNER",
          "RLOCK_TOKEN",         "RLOCK_UNLOCKED=" + held_lock.owner.text(),
          kPasswordVariables[0], kPasswordVariables[1]};
}

}  // namespace

bool no_server_answered(const run::RunOutcome& outcome) {
  const auto* error = std::get_if<Error>(&outcome);
  return error != nullptr && error->kind == ErrorKind::unavailable &&
         error->retry == Retry::later && error->answered == Answered::no;
}

run::RunOutcome run_unlocked(run::Plan plan, RunObserver& observer, run::Signals& signals) {
  plan.outer_runs.clear();
  plan.environment = without_lock;
  plan.on_lost = run::OnLost::ignore;
  plan.watchdog = lock::Watchdog::renew;
  plan.claim.min_hold = {};
  plan.unlocked = true;
  lock::NoStore store;
  UnlockedObserver unlocked(observer);
  return run::hold_and_run(std::move(plan),
                           {store, [] { return std::make_unique<lock::NoStore>(); }, {}}, unlocked,
                           signals);
}

}  // namespace rlock::cli
