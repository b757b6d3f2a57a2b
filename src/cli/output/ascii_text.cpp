#include "cli/output/ascii_text.hpp"

#include <algorithm>
#include <charconv>

namespace rlock::cli {
namespace {

bool beyond_ascii(char c) {
  return static_cast<unsigned char>(c) >= 0x80;
}

std::string two_digits(char c, const char* digits) {
  auto byte = static_cast<unsigned char>(c);
  return {digits[byte >> 4], digits[byte & 15]};
}

// Neither as it is nor as the end of `\u007e`.
bool in_use(char mark, std::string_view text) {
  auto holds = [&](const std::string& part) { return text.find(part) != text.npos; };
  return holds({mark}) || holds("00" + two_digits(mark, "0123456789abcdef")) ||
         holds("00" + two_digits(mark, "0123456789ABCDEF"));
}

}  // namespace

std::optional<AsciiText> AsciiText::of(std::string_view text) {
  AsciiText ascii(text);
  if (std::none_of(text.begin(), text.end(), beyond_ascii)) return ascii;
  constexpr std::string_view kMarks = "~^|`;!$*?<>";  // no TOML outside of strings and comments
  for (char mark : kMarks) {
    if (in_use(mark, text)) continue;
    ascii.mark_ = mark;
    ascii.text_.clear();
    for (char c : text) {
      ascii.text_ += beyond_ascii(c) ? mark + two_digits(c, "0123456789abcdef") : std::string(1, c);
    }
    return ascii;
  }
  return std::nullopt;
}

std::string AsciiText::original(std::string_view piece) const {
  std::string out;
  for (size_t i = 0; i < piece.size(); ++i) {
    unsigned byte = 0;
    const char* digits = piece.data() + i + 1;
    bool marked = has_mark(piece.substr(i, 1)) && i + 2 < piece.size() &&
                  std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    out += marked ? static_cast<char>(byte) : piece[i];
    if (marked) i += 2;
  }
  return out;
}

}  // namespace rlock::cli
