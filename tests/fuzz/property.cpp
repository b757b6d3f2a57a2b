#include "fuzz/property.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

namespace rlock::fuzz {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

bool harmless(std::string_view text) {
  // C1 as UTF-8, ARABIC LETTER MARK, LRM and RLM, line and paragraph separator and the embeddings,
  // the isolates: as pairs of a prefix and a range of the last byte.
  struct Range {
    std::string_view prefix;
    unsigned char first;
    unsigned char last;
  };
  constexpr Range kMarks[] = {{"\xC2", 0x80, 0x9F},
                              {"\xD8", 0x9C, 0x9C},
                              {"\xE2\x80", 0x8E, 0x8F},
                              {"\xE2\x80", 0xA8, 0xAE},
                              {"\xE2\x81", 0xA6, 0xA9}};
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n') || byte == 0x7F) return false;
    for (const Range& mark : kMarks) {
      if (i < mark.prefix.size() || byte < mark.first || byte > mark.last) continue;
      if (text.substr(i - mark.prefix.size(), mark.prefix.size()) == mark.prefix) return false;
    }
  }
  // dump() throws at what is not UTF-8.
  try {
    (void)nlohmann::json(std::string(text)).dump();
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return true;
}

bool harmless_line(std::string_view text) {
  return text.find('\n') == text.npos && harmless(text);
}

bool is_json_line(std::string_view text) {
  if (!text.ends_with('\n')) return false;
  text.remove_suffix(1);
  bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
  return ascii && nlohmann::json::accept(text);
}

}  // namespace rlock::fuzz
