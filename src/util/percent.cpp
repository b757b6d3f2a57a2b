#include "util/percent.hpp"

#include "util/number.hpp"

namespace rlock::util {

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
