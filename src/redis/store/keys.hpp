#pragma once

#include <string>
#include <string_view>

// The keys of a lock in the native format: `prefix{NAME}:suffix`.
namespace rlock::redis {

struct LockKey {
  const char* suffix;
  const char* type;  // the answer to TYPE; null for a key that is never written
};
// In the order in which the scripts expect them: src/lua/begin.lua.
inline constexpr LockKey kLockKeys[] = {
    {"holders", "zset"}, {"limits", "zset"}, {"queue", "zset"},    {"alive", "zset"},
    {"who", "hash"},     {"meta", "hash"},   {"released", "zset"}, {"history", "list"},
    {"never", nullptr},  {"once", "hash"}};

std::string lock_key(std::string_view prefix, std::string_view name, std::string_view suffix);

struct KeyParts {
  std::string_view prefix{};
  std::string_view name{};  // empty in a key that has another form
  std::string_view suffix{};
};
KeyParts parts_of_key(std::string_view key);

}  // namespace rlock::redis
