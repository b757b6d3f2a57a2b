#include "cli/settings/claim_settings.hpp"

#include <cstdint>
#include <limits>

#include "cli/options/values.hpp"
#include "cli/settings/format.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr uint64_t kMostSlots = 1'000'000;

Error usage(std::string text) {
  return {ErrorKind::usage, std::move(text)};
}

Result<lock::Limit> limit_choice(const Choices& choices) {
  TRY(auto slots, number_choice(choices, Opt::slots, kMostSlots));
  const bool shared = choices.has(Opt::shared);
  if (slots && shared) {
    return usage("--slots and --shared cannot be used together: shared holders have no limit");
  }
  if (slots == 0U) return usage("--slots must be at least 1");
  if (slots) return lock::Limit::slots(*slots);
  return shared ? lock::Limit::shared() : lock::Limit::exclusive();
}

Result<WaitSettings> wait_settings(const Choices& choices) {
  TRY(auto wait, duration_choice(choices, Opt::wait));
  if (choices.has(Opt::nonblock)) {
    if (wait.value_or(Millis(0)) > Millis(0)) {
      return usage("--nonblock and --wait cannot be used together");
    }
    wait = Millis(0);
  }
  TRY(auto code, number_choice(choices, Opt::conflict_exit_code, 255));
  return WaitSettings{wait, code ? static_cast<int>(*code) : WaitSettings{}.conflict_code};
}

}  // namespace

Result<std::optional<Millis>> ttl_choice(const Choices& choices) {
  auto ttl = duration_choice(choices, Opt::ttl);
  if (ttl && *ttl && **ttl < Millis(1000)) return usage("--ttl must be at least 1s");
  return ttl;
}

Record holder_record(pid_t pid, const std::vector<std::string>& argv, const Choices& choices) {
  Record record = own_record();
  record.pid = pid;
  if (!choices.has(Opt::hide_command)) record.command = command_text(argv);
  if (auto reason = choices.last(Opt::reason)) record.reason = util::to_utf8(*reason);
  return record;
}

Result<ClaimSettings> claim_settings(lock::LockName name, LeaseSettings lease,
                                     const Choices& choices) {
  TRY_STATUS(check_format(choices));
  TRY(auto waiting, wait_settings(choices));
  TRY(auto limit, limit_choice(choices));
  TRY(auto min_hold, duration_choice(choices, Opt::min_hold));
  // Allowed beside -n, which is stricter: a configuration file may set it for all runs.
  TRY(auto max_queue, number_choice(choices, Opt::max_queue, std::numeric_limits<uint32_t>::max()));
  util::SystemRandom random;
  const bool queues = waiting.wait != Millis(0);
  lock::AcquireCall call{
      .name = std::move(name),
      .owner = lock::Owner::fresh(random),
      .limit = limit,
      .ttl = lease.ttl,
      .min_hold = min_hold.value_or(Millis(0)),
      .responsive = lease.responsive,
      .queueing = queues ? lock::Queueing::wait : lock::Queueing::never,
      .max_queue = max_queue,
      .record = std::move(lease.record),
  };
  return ClaimSettings{std::move(call), waiting};
}

}  // namespace rlock::cli
