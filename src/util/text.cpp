#include "util/text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>

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
    char escaped[16];
    if (length == 0 || (hidden(code) && code < 0x80)) {
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned>(code));
      out += escaped;
    } else if (hidden(code)) {
      std::snprintf(escaped, sizeof escaped, "\\u{%x}", static_cast<unsigned>(code));
      out += escaped;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

size_t character_count(std::string_view text) {
  size_t count = 0;
  for (char c : text) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return count;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string shortened(std::string_view text, size_t width) {
  if (character_count(text) <= width) return std::string(text);
  if (width == 0) return {};
  size_t bytes = 0;
  for (size_t left = width - 1; left > 0; --left) {
    ++bytes;
    while (bytes < text.size() && (byte_at(text, bytes) & 0xC0) == 0x80) ++bytes;
  }
  return std::string(text.substr(0, bytes)) + std::string(kEllipsis);
}

bool matches(std::string_view pattern, std::string_view text) {
  std::string_view after_star, retry;  // the last `*` so far: what follows it, and from where on
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
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const auto byte = static_cast<unsigned char>(c);
    if (letter || (c >= '0' && c <= '9') || kept.find(c) != kept.npos) {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
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
