#include "cli/commands/acquire_settings.hpp"

#include <unistd.h>

#include <climits>

#include "cli/commands/commands.hpp"
#include "cli/options/values.hpp"
#include "cli/output/caller.hpp"
#include "cli/settings/mode_settings.hpp"

namespace rlock::cli {
namespace {

Result<std::optional<pid_t>> pid_choice(const Choices& choices) {
  TRY(auto number, number_choice(choices, Opt::renew_while, INT_MAX));
  if (!number) return std::optional<pid_t>();
  if (*number == 0) return Error{ErrorKind::usage, "--renew-while needs the pid of a process"};
  return std::optional(static_cast<pid_t>(*number));
}

// A default lease would vanish in the middle of the steps.
Status set_lease(AcquireSettings& settings, const Choices& choices) {
  auto pid = pid_choice(choices);
  if (!pid) return std::move(pid).error();
  settings.renew_while = *pid;
  auto ttl = ttl_choice(choices);
  if (!ttl) return std::move(ttl).error();
  if (!*ttl && !*pid) {
    return Error{ErrorKind::usage,
                 "acquire needs --ttl DUR, longer than the steps take, or --renew-while PID"};
  }
  lock::AcquireCall& claim = settings.plan.claim;
  claim.ttl = ttl->value_or(claim.ttl);
  claim.responsive = *pid ? lock::Responsive::yes : lock::Responsive::no;
  return Done{};
}

}  // namespace

Result<AcquireSettings> acquire_settings(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto text, only_name(invocation));
  TRY(auto name, lock::LockName::parse(text));

  util::SystemRandom random;
  AcquireSettings settings{{{std::move(name), lock::Owner::fresh(random)}, {}, {}, {}}};
  lock::AcquireCall& claim = settings.plan.claim;
  TRY(auto waiting, wait_settings(claim, choices));
  settings.waiting = waiting;
  TRY_STATUS(mode_settings(claim, choices));
  TRY_STATUS(set_lease(settings, choices));
  claim.record = encode_record(caller_record(settings.renew_while.value_or(getppid()), choices));
  return settings;
}

}  // namespace rlock::cli
