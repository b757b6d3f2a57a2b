#include "cli/acquire_settings.hpp"

#include <unistd.h>

#include <climits>

#include "cli/caller.hpp"
#include "cli/commands.hpp"
#include "cli/mode_settings.hpp"
#include "cli/values.hpp"

namespace rlock::cli {
namespace {

using util::Error;
using util::ErrorKind;
using util::Result;
using util::Status;

Result<std::optional<pid_t>> pid_choice(const Choices& choices) {
  auto number = number_choice(choices, Opt::renew_while, INT_MAX);
  if (!number) return std::move(number).error();
  if (!*number) return std::optional<pid_t>();
  if (**number == 0) return Error{ErrorKind::usage, "--renew-while needs the pid of a process"};
  return std::optional(static_cast<pid_t>(**number));
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
  claim.attended = *pid ? lock::Attended::yes : lock::Attended::no;
  return util::Done{};
}

}  // namespace

Result<AcquireSettings> acquire_settings(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  auto text = only_name(invocation);
  if (!text) return std::move(text).error();
  auto name = lock::LockName::parse(*text);
  if (!name) return std::move(name).error();

  util::SystemRandom random;
  AcquireSettings settings{{{*std::move(name), lock::Owner::fresh(random)}, {}, {}, {}}};
  lock::AcquireCall& claim = settings.plan.claim;
  auto waiting = wait_settings(claim, choices);
  if (!waiting) return std::move(waiting).error();
  settings.waiting = *waiting;
  if (auto ok = mode_settings(claim, choices); !ok) return std::move(ok).error();
  if (auto ok = set_lease(settings, choices); !ok) return std::move(ok).error();
  claim.record = encode_record(caller_record(settings.renew_while.value_or(getppid()), choices));
  return settings;
}

}  // namespace rlock::cli
