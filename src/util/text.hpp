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

// Text from servers and users is hostile until printable() has processed it.

// Length in bytes of the well-formed UTF-8 character at the front of `text`; 0 if there is none.
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

// Makes valid UTF-8: each byte that is not part of a well-formed character becomes U+FFFD.
std::string to_utf8(std::string_view text);

// Makes text safe for a terminal: control characters (C0, DEL, C1), line and paragraph separators,
// bidi marks and stray bytes become \xHH or \u{HEX}.
std::string printable(std::string_view text);

// ASCII letters in lower case, all other bytes as they are.
std::string lower_case(std::string_view text);

// The number of terminal columns that the text takes: two for an East Asian character, none for a
// combining one.
size_t display_width(std::string_view text);

// At most `width` columns of the text; if something was cut, the last one is an ellipsis.
std::string shortened(std::string_view text, size_t width);

// The text filled up with blanks to exactly `width` columns, or shortened.
std::string padded(std::string_view text, size_t width);

// Lines of at most `width` columns, cut at blanks if possible; at least one line.
std::vector<std::string> wrapped(std::string_view text, size_t width);

// Fills a format string that is checked at compile time: format("{} is busy", name).
// https://fmt.dev has the syntax. Always write the namespace, because std::format takes the same
// arguments.
std::string filled(fmt::string_view pattern, fmt::format_args args);
template <class... Args>
std::string format(fmt::format_string<Args...> pattern, Args&&... args) {
  return filled(pattern, fmt::make_format_args(args...));
}

// Quotes a word for a shell.
std::string shell_quoted(std::string_view word);

std::string joined(const std::vector<std::string>& texts, std::string_view between);

// Adds a text to a list: after `between`, unless the list is empty.
void append(std::string& list, std::string_view between, std::string_view text);

// The pieces between the marks: one more than there are marks, so an empty text has one empty
// piece.
std::vector<std::string_view> split(std::string_view text, char mark);

// Removes and returns the text up to the mark, and removes the mark; the whole text if there is no
// mark.
constexpr std::string_view take_until(std::string_view& text, char mark) {
  const size_t end = text.find(mark);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return taken;
}

// Whether the whole `text` matches a pattern in which `*` matches any text and `?` one character.
bool matches(std::string_view pattern, std::string_view text);

// Parses the whole `text` as an integer: digits, after a `-` if T is signed; nothing else. Returns
// nullopt even if only T has no room for the number.
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

// The word for an enumerator: `words` has one for each, up to `Last`, in their order.
template <auto Last, size_t N>
constexpr std::string_view to_string(decltype(Last) value, const std::string_view (&words)[N]) {
  static_assert(N == static_cast<size_t>(Last) + 1);
  return words[static_cast<size_t>(value)];
}

// Percent-encoding: a byte is written as `%` and two hexadecimal digits.

// Encodes all bytes but letters, digits and the characters of `kept`.
std::string percent_encoded(std::string_view text, std::string_view kept = {});

// Returns nullopt for a '%' without two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace rlock::util
