#include "cli/plan.hpp"

#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#include "cli/output/record.hpp"
#include "cli/settings/resolve.hpp"
#include "redis/open.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

LockAddress address_of(const lock::LockName& name, const Session& session) {
  // Braces distinguish the formats of other clients, because no prefix of a native lock contains
  // one.
  const bool native = session.format() == redis::Format::native;
  return {session.server(),
          native ? session.prefix() : util::format("{{{}}}", to_string(session.format())),
          name.text()};
}

// A name without a value removes the variable of an outer run from the environment.
std::vector<std::string> variables(const std::vector<HeldRecord>& outer_locks,
                                   const LockAddress& address, Millis renewed_ttl,
                                   const lock::HeldLock& held_lock) {
  const uint64_t token = held_lock.token.value;
  const HolderProcess self{getpid(), BootClock::now(), held_lock.lease(renewed_ttl)};
  return {"RLOCK_NAME=" + address.name,
          "RLOCK_OWNER=" + held_lock.owner.text(),
          token != 0 ? util::format("RLOCK_TOKEN={}", token) : "RLOCK_TOKEN",
          held_lock.slot != 0 ? util::format("RLOCK_SLOT={}", held_lock.slot) : "RLOCK_SLOT",
          "RLOCK_WAITED_MS=" + std::to_string(held_lock.waited().count()),
          "RLOCK_UNLOCKED",
          "RLOCK_HELD=" + encode_held(records_for_command(outer_locks, {address, held_lock, self})),
          redis::kPasswordVariables[0],
          redis::kPasswordVariables[1]};
}

}  // namespace

Environment present_environment() {
  const char* held = system_getenv("RLOCK_HELD");
  return {decode_held(held == nullptr ? "" : held), BootClock::now()};
}

run::Plan make_plan(const RunSettings& settings, const Session& session,
                    const Environment& environment) {
  run::Plan plan = settings.plan;
  plan.claim.replicas = session.replicas();
  plan.limits.reach = session.connect_timeout();
  if (settings.waiting.wait) plan.limits.deadline = environment.now + *settings.waiting.wait;
  if (settings.fail_open) {
    plan.limits.unreached = settings.fail_open->after.value_or(session.connect_timeout());
  }
  const auto holds = outer_holds(environment.outer_locks, session);
  if (!holds.empty()) {
    Record record = decode_record(plan.claim.record);
    record.holds = holds;
    plan.claim.record = encode_record(record);
  }
  const LockAddress address = address_of(plan.claim.name, session);
  plan.outer_runs = outer_runs(environment.outer_locks, address);
  const bool renews = plan.watchdog == lock::Watchdog::renew;
  plan.environment = [outer_locks = environment.outer_locks, address,
                      ttl = renews ? plan.claim.ttl : Millis(0)](const lock::HeldLock& held_lock) {
    return variables(outer_locks, address, ttl, held_lock);
  };
  return plan;
}

}  // namespace rlock::cli
