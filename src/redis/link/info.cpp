#include "redis/link/info.hpp"

#include <algorithm>

namespace rlock::redis {

InfoFields read_info(std::string_view text) {
  InfoFields info;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\r\n"), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    const size_t colon = line.find(':');
    if (colon != line.npos) info.emplace(line.substr(0, colon), line.substr(colon + 1));
  }
  return info;
}

std::string info_field(const InfoFields& info, std::string_view field) {
  auto found = info.find(field);
  return found == info.end() ? std::string() : found->second;
}

}  // namespace rlock::redis
