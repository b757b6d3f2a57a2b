#include "cli/settings/mode_settings.hpp"

#include "cli/options/values.hpp"
#include "cli/settings/format.hpp"

#include <limits>

namespace rlock::cli {
namespace {

constexpr uint64_t kMostSlots = 1'000'000;

Error usage(std::string text) {
  return {ErrorKind::usage, std::move(text)};
}

Status set_limit(lock::AcquireCall& claim, const Choices& choices) {
  auto slots = number_choice(choices, Opt::slots, kMostSlots);
  if (!slots) return std::move(slots).error();
  bool shared = choices.has(Opt::shared);
  if (*slots && shared) {
    return usage("--slots and --shared exclude each other: shared holders have no limit");
  }
  if (*slots == 0U) return usage("--slots must be at least 1");
  if (*slots) claim.limit = lock::Limit::slots(**slots);
  if (shared) claim.limit = lock::Limit::shared();
  return Done{};
}

}  // namespace

Status mode_settings(lock::AcquireCall& claim, const Choices& choices) {
  if (auto ok = check_format(choices); !ok) return ok;
  TRY_STATUS(set_limit(claim, choices));
  TRY(auto min_hold, duration_choice(choices, Opt::min_hold));
  claim.min_hold = min_hold.value_or(claim.min_hold);

  // Beside -n, which is stricter, it is allowed: a config file may set it for all runs.
  TRY(auto max_queue, number_choice(choices, Opt::max_queue, std::numeric_limits<uint32_t>::max()));
  claim.max_queue = max_queue;
  return Done{};
}

}  // namespace rlock::cli
