#include "cli/config_scan.hpp"

#include <algorithm>

namespace rlock::cli {
namespace {

bool beyond_ascii(char c) {
  return static_cast<unsigned char>(c) >= 0x80;
}

bool is_quote(char c) {
  return c == '"' || c == '\'';
}

bool opens_many_lines(std::string_view text) {
  return text.size() >= 3 && text[1] == text[0] && text[2] == text[0];
}

// The length of the string on one line at the front of `text`; one that nobody closes ends with it.
size_t line_string(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\n') return i;
    if (text[i] == text[0]) return i + 1;
    if (text[0] != '"' || text[i] != '\\' || i + 1 == text.size()) continue;
    if (beyond_ascii(text[i + 1])) return i + 1;  // there is no such escape
    if (text[i + 1] != '\n') ++i;
  }
  return text.size();
}

// The length of the string of many lines there. Up to two quotes may stand before the last three.
size_t lines_string(std::string_view text) {
  for (size_t i = 3; i < text.size(); ++i) {
    if (text[0] == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == text[0] && opens_many_lines(text.substr(i))) {
      i += 3;
      for (int more = 0; more < 2 && i < text.size() && text[i] == text[0]; ++more) ++i;
      return i;
    }
  }
  return text.size();
}

// How many bytes at the front of `text` may be anything.
size_t free_length(std::string_view text) {
  if (text.front() == '#') return std::min(text.find('\n'), text.size());
  if (is_quote(text.front()) && !opens_many_lines(text)) return line_string(text);
  return 0;
}

}  // namespace

unsigned misplaced_beyond_ascii(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  while (at < text.size()) {
    std::string_view rest = text.substr(at);
    if (size_t length = free_length(rest); length > 0) {
      at += length;
      continue;
    }
    std::string_view strict = rest.substr(0, is_quote(rest.front()) ? lines_string(rest) : 1);
    auto found = std::find_if(strict.begin(), strict.end(), beyond_ascii);
    if (found != strict.end()) {
      auto lines = std::count(text.data(), &*found, '\n');
      return static_cast<unsigned>(lines) + 1;
    }
    at += strict.size();
  }
  return 0;
}

}  // namespace rlock::cli
