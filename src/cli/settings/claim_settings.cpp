#include "cli/settings/claim_settings.hpp"

#include <cstdint>
#include <limits>

#include "cli/options/values.hpp"
#include "cli/settings/format.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr uint64_t kMostHistoryRows = 1000;
constexpr uint64_t kMostSlots = 1024;  // each of them has a number

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
  const WaitSettings defaults;
  TRY(auto conflict, exit_code_choice(choices, Opt::conflict_exit_code, defaults.conflict_code));
  TRY(auto superseded,
      exit_code_choice(choices, Opt::superseded_exit_code, defaults.superseded_code));
  return WaitSettings{wait, conflict, superseded};
}

Result<std::optional<lock::Supersede>> supersede_choice(const Choices& choices) {
  if (!choices.has(Opt::supersede)) {
    // A configuration file may set it for all runs.
    if (!choices.is_flag(Opt::superseded_exit_code)) return std::optional<lock::Supersede>();
    return usage("--superseded-exit-code needs --supersede");
  }
  if (choices.last(Opt::supersede) == kFlagValue) return std::optional(lock::Supersede{});
  TRY(auto number, number_choice(choices, Opt::supersede, kGreatestToken));
  return std::optional(lock::Supersede{number});
}

}  // namespace

Result<std::optional<Millis>> ttl_choice(const Choices& choices) {
  auto ttl = duration_choice(choices, Opt::ttl);
  if (ttl && *ttl && **ttl < Millis(1000)) return usage("--ttl must be at least 1s");
  return ttl;
}

Record holder_record(pid_t pid, const std::vector<std::string>& argv, const Choices& choices,
                     Getenv getenv) {
  Record record = own_record();
  record.pid = pid;
  record.processes = own_processes();
  record.renews = !choices.has(Opt::no_renew);
  if (!choices.has(Opt::hide_command)) record.command = command_text(argv);
  if (auto reason = choices.last(Opt::reason)) record.reason = util::to_utf8(*reason);
  if (const char* trace = getenv("TRACEPARENT")) record.traceparent = parse_traceparent(trace);
  return record;
}

Result<ClaimSettings> claim_settings(lock::LockName name, LeaseSettings lease,
                                     const Choices& choices) {
  TRY_STATUS(check_format(choices));
  TRY(auto waiting, wait_settings(choices));
  TRY(auto limit, limit_choice(choices));
  TRY(auto min_hold, duration_choice(choices, Opt::min_hold));
  TRY(auto supersede, supersede_choice(choices));
  // Allowed beside -n, which is stricter: a configuration file may set it for all runs.
  TRY(auto max_queue, number_choice(choices, Opt::max_queue, std::numeric_limits<uint32_t>::max()));
  TRY(auto history_rows, number_choice(choices, Opt::history_rows, kMostHistoryRows));
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
      .supersede = supersede,
      .numbered = choices.has(Opt::slots),
      .history_rows = history_rows,
      .while_closed = choices.has(Opt::while_closed),
  };
  return ClaimSettings{std::move(call), waiting};
}

}  // namespace rlock::cli
