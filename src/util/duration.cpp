#include "util/duration.hpp"

#include <time.h>

#include <array>
#include <cstdlib>

#include "util/text.hpp"

namespace rlock::util {
namespace {

struct Unit {
  std::string_view name;
  double ms;
};

// Longest names first: `ms` must not be read as `m`.
constexpr std::array<Unit, 5> kUnits{
    {{"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}}};
constexpr auto kLongest = static_cast<double>(kLongestDuration.count());

Error malformed(std::string_view text) {
  return {
      ErrorKind::usage,
      util::format(
          "not a duration: \"{}\" (write 500ms, 10s, 5m, 1h30m, 2d or a number of seconds)", text)};
}

// The length of the number at the front: digits with at most one point. from_chars would also
// accept "inf", "1e9" and a sign.
size_t number_length(std::string_view text) {
  size_t length = 0;
  bool point = false;
  for (char c : text) {
    if (c == '.' && !point) {
      point = true;
    } else if (c < '0' || c > '9') {
      break;
    }
    ++length;
  }
  return length == 1 && point ? 0 : length;
}

const Unit* unit_at(std::string_view text) {
  for (const Unit& unit : kUnits) {
    if (text.starts_with(unit.name)) return &unit;
  }
  return nullptr;
}

}  // namespace

Result<Millis> parse_duration(std::string_view text) {
  double total = 0;
  double smallest = kLongest * 10;
  std::string_view rest = text;
  do {
    size_t length = number_length(rest);
    if (length == 0) return malformed(text);
    // Not from_chars, which returns no value for a number that is too large; strtod returns
    // infinity.
    double number = std::strtod(std::string(rest.substr(0, length)).c_str(), nullptr);
    rest.remove_prefix(length);
    const Unit* unit = unit_at(rest);
    if (unit == nullptr) {
      if (!rest.empty() || smallest < kLongest) return malformed(text);
      total = number * 1e3;
      break;
    }
    if (unit->ms >= smallest) return malformed(text);
    smallest = unit->ms;
    total += number * unit->ms;
    rest.remove_prefix(unit->name.size());
  } while (!rest.empty());
  if (!(total <= kLongest)) {
    return Error{ErrorKind::usage, util::format("duration too long: \"{}\" (at most 3650d)", text)};
  }
  return Millis(static_cast<Millis::rep>(total + 0.5));  // never negative: rounds
}

std::string format_duration(Millis value) {
  auto ms = value.count();
  if (ms < 0) ms = 0;
  if (ms < 1000) return util::format("{}ms", ms);
  if (ms < 10'000 && ms % 1000 >= 100) return util::format("{}.{}s", ms / 1000, ms % 1000 / 100);
  auto s = ms / 1000;
  auto pair = [](Millis::rep big, const char* unit, Millis::rep small, const char* lesser) {
    return small == 0 ? util::format("{}{}", big, unit)
                      : util::format("{}{}{}{}", big, unit, small, lesser);
  };
  if (s < 60) return util::format("{}s", s);
  if (s < 3600) return pair(s / 60, "m", s % 60, "s");
  if (s < 86400) return pair(s / 3600, "h", s % 3600 / 60, "m");
  return pair(s / 86400, "d", s % 86400 / 3600, "h");
}

std::string format_rough_duration(Millis value) {
  constexpr Millis kMinute{60'000}, kSecond{1'000};
  const Millis unit = value < 2 * kMinute ? kSecond : kMinute;
  return format_duration(value < kSecond ? value : (value + unit / 2) / unit * unit);
}

std::string format_utc(int64_t seconds) {
  constexpr int64_t kYear10000 = 253'402'300'800;
  if (seconds <= 0 || seconds >= kYear10000) return {};
  const time_t time = seconds;
  tm utc{};
  char text[32];
  if (gmtime_r(&time, &utc) == nullptr) return {};
  return {text, strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

}  // namespace rlock::util
