#pragma once

#include <fmt/core.h>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::util {

// Text from servers and users is hostile until it went through here.

// Length in bytes of the well-formed UTF-8 character at the front of text; 0 when there is none.
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

// Valid UTF-8: each byte that is not part of a well-formed character becomes U+FFFD.
std::string to_utf8(std::string_view text);

// Safe on a terminal: control characters (C0, DEL, C1), line and paragraph separators, bidi marks
// and stray bytes are written as \xHH or \u{HEX}.
std::string printable(std::string_view text);

// ASCII letters in lower case, all other bytes as they are.
std::string lower_case(std::string_view text);

// How many columns of a terminal the text takes: East Asian characters take two, combining ones
// none.
size_t display_width(std::string_view text);

// At most `width` columns of text; where something was cut, the last one is an ellipsis.
std::string shortened(std::string_view text, size_t width);

// Filled up with blanks to exactly `width` columns, or shortened.
std::string padded(std::string_view text, size_t width);

// Lines of at most `width` columns, cut at blanks where there are any; at least one.
std::vector<std::string> wrapped(std::string_view text, size_t width);

// A text as one format string, which is checked at compile time: format("{} is busy", name).
// https://fmt.dev has the syntax. Always with its namespace: std::format takes the same arguments.
std::string filled(fmt::string_view pattern, fmt::format_args args);
template <class... Args>
std::string format(fmt::format_string<Args...> pattern, Args&&... args) {
  return filled(pattern, fmt::make_format_args(args...));
}

// A word as a shell reads it.
std::string shell_quoted(std::string_view word);

std::string joined(const std::vector<std::string>& texts, std::string_view between);

// The pieces between the marks, one more than there are marks: an empty text has one, empty.
std::vector<std::string_view> split(std::string_view text, char mark);

// Takes the text up to the mark, and the mark; all of the text where there is none.
constexpr std::string_view take_until(std::string_view& text, char mark) {
  const size_t end = text.find(mark);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return taken;
}

// Whether all of `text` fits a pattern in which `*` stands for anything and `?` for one character.
bool matches(std::string_view pattern, std::string_view text);

// The integer that all of `text` is: digits, after a `-` where T is signed; nothing else. nullopt
// even if only T has no room for it.
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

// The word of an enumerator: `words` has one for each, up to `Last`, in their order.
template <auto Last, size_t N>
constexpr std::string_view to_string(decltype(Last) value, const std::string_view (&words)[N]) {
  static_assert(N == static_cast<size_t>(Last) + 1);
  return words[static_cast<size_t>(value)];
}

// Percent-encoding: a byte is written as `%` and two hexadecimal digits.

// Letters, digits and the characters of `kept` stay as they are.
std::string percent_encoded(std::string_view text, std::string_view kept = {});

// nullopt for a '%' without two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace rlock::util
