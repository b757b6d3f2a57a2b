#include "cli/settings/once_settings.hpp"

#include <array>
#include <cstdint>
#include <limits>

#include "cli/options/values.hpp"
#include "cli/output/messages.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::array kOnceOptions{Opt::once, Opt::once_per, Opt::once_within};
constexpr Millis kLongestDistance = 366 * 24h;

// A day of 25 hours ends summer time.
struct PeriodRow {
  Period period;
  std::string_view word;
  const char* form;  // for strftime(3)
  bool utc;
  Millis longest;
};
constexpr PeriodRow kPeriods[] = {
    {Period::minute, "minute", "%Y-%m-%dT%H:%MZ", true, 1min},
    {Period::hour, "hour", "%Y-%m-%dT%HZ", true, 1h},
    {Period::day, "day", "%Y-%m-%d", false, 25h},
    {Period::week, "week", "%G-W%V", false, 7 * 24h + 1h},
    {Period::month, "month", "%Y-%m", false, 31 * 24h + 1h},
};

const PeriodRow& row_of_period(Period period) {
  return kPeriods[static_cast<size_t>(period)];
}

Result<lock::Once> period_choice(const std::string& word, time_t now) {
  for (const PeriodRow& row : kPeriods) {
    if (word != row.word) continue;
    return lock::Once{lock::OnceKind::period, period_text(row.period, now), row.longest, {}};
  }
  return usage("--once-per must be minute, hour, day, week or month, not " + in_quotes(word));
}

Result<lock::Once> distance_choice(const Choices& choices) {
  TRY(auto distance, duration_choice(choices, Opt::once_within));
  if (*distance == Millis(0) || *distance > kLongestDistance) {
    return usage("--once-within must be longer than 0 and at most 366d");
  }
  return lock::Once{lock::OnceKind::within, {}, *distance, {}};
}

// The last one, since they exclude each other.
std::optional<Opt> chosen(const Choices& choices) {
  std::optional<Opt> found;
  for (Opt option : kOnceOptions) {
    if (choices.has(option)) found = option;
  }
  return found;
}

Result<lock::Once> once_of(Opt option, const Choices& choices, time_t now) {
  if (option == Opt::once_per) return period_choice(*choices.last(option), now);
  if (option == Opt::once_within) return distance_choice(choices);
  TRY(auto key, once_key_choice(choices));
  return lock::Once{lock::OnceKind::key, *std::move(key), Millis(0), {}};
}

}  // namespace

std::string period_text(Period period, time_t now) {
  const PeriodRow& row = row_of_period(period);
  tm date{};
  tzset();
  (row.utc ? gmtime_r : localtime_r)(&now, &date);
  char text[64];
  const size_t length = strftime(text, sizeof text, row.form, &date);
  return std::string(row.word) + ":" + std::string(text, length);
}

Result<std::optional<lock::Once>> once_choice(const Choices& choices, time_t now) {
  TRY(auto max_failures,
      number_choice(choices, Opt::max_failures, std::numeric_limits<uint32_t>::max()));
  if (max_failures == 0U) return usage("--max-failures must be at least 1");
  const auto option = chosen(choices);
  // A configuration file may set them for all runs.
  for (Opt dependent : {Opt::max_failures, Opt::done_exit_code}) {
    if (option || !choices.is_flag(dependent)) continue;
    return usage(shown_name(dependent) + " needs --once, --once-per or --once-within");
  }
  if (!option) return std::optional<lock::Once>();
  for (Opt other : kOnceOptions) {
    if (other == *option || !choices.has(other)) continue;
    return usage(shown_name(other) + " and " + shown_name(*option) +
                 " cannot be used together: each says on its own when the work is done");
  }
  TRY(auto once, once_of(*option, choices, now));
  once.max_failures = max_failures;
  return std::optional(std::move(once));
}

Status check_once(const Choices& choices, const lock::AcquireCall& call) {
  if (!call.once || call.limit == lock::Limit::exclusive()) return Done{};
  const Opt limit = choices.has(Opt::shared) ? Opt::shared : Opt::slots;
  return usage(shown_name(*chosen(choices)) + " and " + shown_name(limit) +
               " cannot be used together: several runs could do the work at once");
}

Result<std::optional<std::string>> once_key_choice(const Choices& choices) {
  auto key = choices.last(Opt::once);
  if (!key) return key;
  if (key->empty()) {
    return usage(
        "--once: the KEY is empty; a variable that is not set expands to that (--once \"$UNSET\")");
  }
  if (key->starts_with('-') || key->find_first_not_of(' ') == std::string::npos) {
    return usage("--once: bad KEY " + quoted_word(*key) +
                 ": it must not be blank or begin with \"-\"; put quotes around a variable (--once "
                 "\"$KEY\")");
  }
  if (const char* why = lock::why_bad_name(*key)) {
    return usage("--once: bad KEY " + quoted_word(*key) + ": " + why);
  }
  return key;
}

}  // namespace rlock::cli
