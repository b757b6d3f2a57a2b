#include "cli/settings/claim_settings.hpp"

#include "cli/options/values.hpp"

namespace rlock::cli {

Result<WaitSettings> wait_settings(lock::AcquireCall& claim, const Choices& choices) {
  TRY(auto wait, duration_choice(choices, Opt::wait));
  WaitSettings settings{wait};
  if (choices.has(Opt::nonblock)) {
    if (settings.wait.value_or(Millis(0)) > Millis(0)) {
      return Error{ErrorKind::usage, "--nonblock and --wait exclude each other"};
    }
    settings.wait = Millis(0);
  }
  if (settings.wait == Millis(0)) claim.queueing = lock::Queueing::never;

  TRY(auto code, number_choice(choices, Opt::conflict_exit_code, 255));
  if (code) settings.conflict_code = static_cast<int>(*code);
  return settings;
}

Result<std::optional<Millis>> ttl_choice(const Choices& choices) {
  auto ttl = duration_choice(choices, Opt::ttl);
  if (ttl && *ttl && **ttl < Millis(1000)) {
    return Error{ErrorKind::usage, "--ttl must be at least 1s"};
  }
  return ttl;
}

}  // namespace rlock::cli
