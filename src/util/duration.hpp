#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::util {

// Reads `500ms`, `10s`, `5m`, `1h30m`, `2d` or a bare number of seconds, fractions allowed.
// ErrorKind::usage for anything else, for negative values and for more than kLongestDuration.
inline constexpr Millis kLongestDuration = std::chrono::hours(24) * 3650;
Result<Millis> parse_duration(std::string_view text);

// For people: `850ms`, `2.5s`, `1m30s`, `2h5m`, `3d4h`; two units at most.
std::string format_duration(Millis value);

// Minutes if there are two or more, otherwise seconds: `40m`, `2h5m`, `12s`.
std::string format_rough_duration(Millis value);

// `2026-11-21T02:53:00Z` for a number of seconds since 1970. Empty for 0 (unknown) and for years
// outside 1970-9999, which only a broken or hostile server sends.
std::string format_utc(int64_t seconds);

}  // namespace rlock::util
