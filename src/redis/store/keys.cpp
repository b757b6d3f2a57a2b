#include "redis/store/keys.hpp"

#include "util/text.hpp"

namespace rlock::redis {

std::string lock_key(std::string_view prefix, std::string_view name, std::string_view suffix) {
  return util::format("{}{{{}}}:{}", prefix, name, suffix);
}

KeyParts parts_of_key(std::string_view key) {
  const size_t begin = key.find('{');
  const size_t end = key.rfind("}:");
  if (end == key.npos || begin > end) return {};
  return {key.substr(0, begin), key.substr(begin + 1, end - begin - 1), key.substr(end + 2)};
}

}  // namespace rlock::redis
