#include "cli/watch/width.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

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

uint32_t code_of(std::string_view character) {
  const auto first = static_cast<uint8_t>(character.front());
  if (character.size() == 1) return first;
  uint32_t code = first & (0xFFu >> (character.size() + 1));
  for (char c : character.substr(1)) code = (code << 6) | (static_cast<uint8_t>(c) & 0x3Fu);
  return code;
}

// Takes the character at the front of `text`, which is not empty.
std::string_view next_character(std::string_view& text) {
  std::string_view character = text.substr(0, std::max<size_t>(1, util::utf8_length(text)));
  text.remove_prefix(character.size());
  return character;
}

size_t width_of(std::string_view character) {
  const uint32_t code = code_of(character);
  if (in(code, kCombining)) return 0;
  return in(code, kWide) ? 2 : 1;
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) width += width_of(next_character(text));
  return width;
}

std::string cut_to_width(std::string_view text, size_t width) {
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

std::string padded(std::string_view text, size_t width) {
  std::string out = cut_to_width(text, width);
  out.append(width - std::min(width, display_width(out)), ' ');
  return out;
}

std::string to_ascii(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view character = next_character(text);
    const bool ascii = character.size() == 1 && static_cast<uint8_t>(character.front()) < 0x80;
    if (ascii) {
      out += character;
    } else {
      out += character == kEllipsis ? '~' : '?';
    }
  }
  return out;
}

}  // namespace rlock::cli
