#include "redis/store/wake_call.hpp"

#include <string_view>

#include "lua/scripts.hpp"

namespace rlock::redis {

bool has_wakes(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements < 4) return false;
  const redisReply& word = *reply.element[0];
  return word.type == REDIS_REPLY_STRING && std::string_view(word.str, word.len) == "wakes";
}

std::vector<std::string> wake_call(const std::vector<std::string>& words, const redisReply& reply) {
  constexpr size_t kKeyCount = 2;
  constexpr size_t kFirstKey = 3;
  constexpr size_t kFirstOwner = 2;
  auto first = words.begin() + kFirstKey;
  std::vector<std::string> keys(first, first + std::stoi(words[kKeyCount]));
  std::string base = keys.front().substr(0, keys.front().rfind(':') + 1);
  std::vector<std::string> arguments;
  for (size_t i = kFirstOwner; i + 1 < reply.elements; i += 2) {
    const redisReply& owner = *reply.element[i];
    const redisReply& word = *reply.element[i + 1];
    if (owner.str == nullptr || word.str == nullptr) continue;
    keys.push_back(base + "wake:" + std::string(owner.str, owner.len));
    arguments.emplace_back(owner.str, owner.len);
    arguments.emplace_back(word.str, word.len);
  }
  std::vector<std::string> call{"EVALSHA", std::string(lua::wake.sha1),
                                std::to_string(keys.size())};
  call.insert(call.end(), keys.begin(), keys.end());
  call.insert(call.end(), arguments.begin(), arguments.end());
  return call;
}

}  // namespace rlock::redis
