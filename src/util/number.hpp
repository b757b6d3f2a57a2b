#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>

namespace rlock::util {

// The integer that all of `text` is: digits, after a `-` where T is signed; nothing else. nullopt
// also where T has no room for it.
template <std::integral T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value{};
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// The digits at the front of a text: `7` of `7.2.4`, `20` of `20-rc1`.
constexpr std::string_view leading_digits(std::string_view text) {
  return text.substr(0, text.find_first_not_of("0123456789"));
}

}  // namespace rlock::util
