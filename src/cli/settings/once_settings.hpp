#pragma once

#include <time.h>

#include <optional>
#include <string>

#include "cli/options/parse.hpp"
#include "lock/store.hpp"

// Work that is to be done once: --once, --once-per, --once-within. ErrorKind::usage says what is
// wrong.
namespace rlock::cli {

enum class Period { minute, hour, day, week, month };

// The period of the calendar that `now` is in: `day:2026-11-22`, `week:2026-W47`,
// `hour:2026-11-22T09Z`. A day, a week (ISO 8601, from Monday) and a month by the local date; a
// minute and an hour by UTC, so that the change to summer time repeats and skips nothing.
std::string period_text(Period period, time_t now);

// What a run that begins at `now` is asked to do once; none where it has no such option.
Result<std::optional<lock::Once>> once_choice(const Choices& choices, time_t now);

// Whether work that is done once can be done under a lock with this limit.
Status check_once(const Choices& choices, const lock::AcquireCall& call);

// The KEY of --once, where it was given.
Result<std::optional<std::string>> once_key_choice(const Choices& choices);

}  // namespace rlock::cli
