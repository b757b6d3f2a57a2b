#include "util/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace rlock::util {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

uint8_t byte_at(std::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

uint32_t decode(std::string_view text, size_t length) {
  if (length == 1) return byte_at(text, 0);
  uint32_t code = byte_at(text, 0) & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) code = (code << 6) | (byte_at(text, i) & 0x3Fu);
  return code;
}

bool hidden(uint32_t c) {
  bool control = c < 0x20 || (c >= 0x7F && c <= 0x9F);
  bool breaks = c == 0x2028 || c == 0x2029;
  bool bidi = c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
              (c >= 0x2066 && c <= 0x2069);
  bool invisible = c == 0x00AD || c == 0x200B || c == 0xFEFF || (c >= 0xE0000 && c <= 0xE007F);
  return control || breaks || bidi || invisible;
}

struct Range {
  uint32_t first, last;
};
// Unicode's East_Asian_Width W and F, in blocks; unassigned characters within them count, too.
constexpr std::array kWide{
    Range{0x1100, 0x115F},   Range{0x231A, 0x231B},   Range{0x23E9, 0x23EC},
    Range{0x2614, 0x2615},   Range{0x26AA, 0x26AB},   Range{0x2705, 0x2705},
    Range{0x270A, 0x270B},   Range{0x2728, 0x2728},   Range{0x274C, 0x274C},
    Range{0x2753, 0x2757},   Range{0x2795, 0x2797},   Range{0x2E80, 0x303E},
    Range{0x3041, 0x4DBF},   Range{0x4E00, 0xA4CF},   Range{0xA960, 0xA97C},
    Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE6F},
    Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},   Range{0x1F300, 0x1F64F},
    Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1F9FF}, Range{0x20000, 0x3FFFD}};
constexpr std::array kCombining{Range{0x0300, 0x036F}, Range{0x0483, 0x0489}, Range{0x0591, 0x05BD},
                                Range{0x064B, 0x065F}, Range{0x1AB0, 0x1AFF}, Range{0x1DC0, 0x1DFF},
                                Range{0x200C, 0x200D}, Range{0x20D0, 0x20FF}, Range{0xFE00, 0xFE0F},
                                Range{0xFE20, 0xFE2F}};

template <class Ranges>
bool in(uint32_t c, const Ranges& ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](Range range) { return c >= range.first && c <= range.last; });
}

// Removes and returns the first character of `text`, which must not be empty.
std::string_view next_character(std::string_view& text) {
  std::string_view character = text.substr(0, std::max<size_t>(1, utf8_length(text)));
  text.remove_prefix(character.size());
  return character;
}

size_t width_of(std::string_view character) {
  const uint32_t code = decode(character, character.size());
  if (in(code, kCombining)) return 0;
  return in(code, kWide) ? 2 : 1;
}

bool needs_no_quotes(std::string_view word) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
  return !word.empty() && word.find_first_not_of(kSafe) == word.npos;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  uint8_t first = byte_at(text, 0);
  if (first < 0x80) return 1;
  size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                  : (first & 0xF0) == 0xE0         ? 3
                  : first >= 0xF0 && first <= 0xF4 ? 4
                                                   : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  }
  uint32_t code = decode(text, length);
  bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t length = utf8_length(text);
    out += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t length = utf8_length(text);
    uint32_t code = length == 0 ? byte_at(text, 0) : decode(text, length);
    if (length == 0 || (hidden(code) && code < 0x80)) {
      out += util::format("\\x{:02x}", code);
    } else if (hidden(code)) {
      out += util::format("\\u{{{:x}}}", code);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) width += width_of(next_character(text));
  return width;
}

std::string shortened(std::string_view text, size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::string out;
  size_t used = 0;
  while (!text.empty()) {
    const std::string_view character = next_character(text);
    used += width_of(character);
    if (used + 1 > width) break;
    out += character;
  }
  return out + std::string(kEllipsis);
}

std::string padded(std::string_view text, size_t width) {
  std::string out = shortened(text, width);
  out.append(width - std::min(width, display_width(out)), ' ');
  return out;
}

std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  do {
    std::string_view rest = text;
    size_t used = 0, blank = 0;
    while (!rest.empty()) {
      const std::string_view character = next_character(rest);
      used += width_of(character);
      const auto at = static_cast<size_t>(character.data() - text.data());
      if (character == " ") blank = at + 1;
      if (used > width && at > 0) {
        rest = text.substr(blank > 0 ? blank : at);
        break;
      }
    }
    const std::string_view line = text.substr(0, text.size() - rest.size());
    lines.emplace_back(line.substr(0, line.find_last_not_of(' ') + 1));
    text = rest;
  } while (!text.empty());
  return lines;
}

std::string shell_quoted(std::string_view word) {
  if (needs_no_quotes(word)) return std::string(word);
  std::string out = "'";
  for (char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string joined(const std::vector<std::string>& texts, std::string_view between) {
  std::string out;
  for (const std::string& text : texts) {
    if (&text != &texts.front()) out += between;
    out += text;
  }
  return out;
}

void append(std::string& list, std::string_view between, std::string_view text) {
  if (!list.empty()) list += between;
  list += text;
}

std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> pieces;
  while (true) {
    const bool last = text.find(mark) == text.npos;
    pieces.push_back(take_until(text, mark));
    if (last) return pieces;
  }
}

bool matches(std::string_view pattern, std::string_view text) {
  // Of the last `*` so far: the pattern after it, and the text from which it is tried.
  std::string_view after_star, retry;
  bool star = false;
  while (!text.empty() || !pattern.empty()) {
    const bool wild = pattern.starts_with('?');
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      after_star = pattern;
      retry = text;
      star = true;
    } else if (!text.empty() && (wild || pattern.starts_with(text.front()))) {
      pattern.remove_prefix(1);
      text.remove_prefix(wild ? std::max<size_t>(1, utf8_length(text)) : 1);
    } else if (star && !retry.empty()) {
      retry.remove_prefix(1);
      pattern = after_star;
      text = retry;
    } else {
      return false;
    }
  }
  return true;
}

std::string percent_encoded(std::string_view text, std::string_view kept) {
  std::string out;
  for (char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter || (c >= '0' && c <= '9') || kept.find(c) != kept.npos) {
      out += c;
    } else {
      out += util::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  constexpr size_t kEscape = 3;
  std::string out;
  while (!text.empty()) {
    size_t used = 1;
    char byte = text.front();
    if (byte == '%') {
      auto value = parse_number<unsigned char>(text.substr(1, kEscape - 1), 16);
      if (!value || text.size() < kEscape) return std::nullopt;
      byte = static_cast<char>(*value);
      used = kEscape;
    }
    out += byte;
    text.remove_prefix(used);
  }
  return out;
}

}  // namespace rlock::util
