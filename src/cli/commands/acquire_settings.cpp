#include "cli/commands/acquire_settings.hpp"

#include <unistd.h>

#include <climits>

#include "cli/commands/commands.hpp"
#include "cli/options/values.hpp"

namespace rlock::cli {
namespace {

Result<std::optional<pid_t>> pid_choice(const Choices& choices) {
  TRY(auto number, number_choice(choices, Opt::renew_while, INT_MAX));
  if (!number) return std::optional<pid_t>();
  if (*number == 0) return Error{ErrorKind::usage, "--renew-while needs the pid of a process"};
  return std::optional(static_cast<pid_t>(*number));
}

// A lease of the default length could end in the middle of the steps.
Result<Millis> lease_length(const Choices& choices, std::optional<pid_t> renew_while) {
  TRY(auto ttl, ttl_choice(choices));
  if (!ttl && !renew_while) {
    return Error{ErrorKind::usage,
                 "acquire needs --ttl DUR, longer than the steps take, or --renew-while PID"};
  }
  return ttl.value_or(kDefaultTtl);
}

}  // namespace

Result<AcquireSettings> acquire_settings(const Invocation& invocation) {
  const Choices& choices = invocation.choices;
  TRY(auto text, only_name(invocation));
  TRY(auto name, lock::LockName::parse(text));
  TRY(auto renew_while, pid_choice(choices));
  TRY(auto ttl, lease_length(choices, renew_while));
  const pid_t pid = renew_while.value_or(getppid());
  LeaseSettings lease{ttl, renew_while ? lock::Responsive::yes : lock::Responsive::no,
                      encode_record(holder_record(pid, command_line_of(pid), choices))};
  TRY(auto claim, claim_settings(std::move(name), std::move(lease), choices));
  return AcquireSettings{
      {.claim = std::move(claim.call), .limits = {}, .argv = {}, .environment = {}},
      claim.waiting,
      renew_while};
}

}  // namespace rlock::cli
