#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fake_redis/database.hpp"
#include "redis/store/redis_store.hpp"

struct lua_State;

namespace rlock::fake {

// A change in the text of a script, to see that a check notices it.
struct TextChange {
  std::string from;
  std::string to;
};

// The scripts as the stores send them and the servers know them.
class ScriptSet {
 public:
  explicit ScriptSet(const std::vector<TextChange>& changes = {});
  ScriptSet(const ScriptSet&) = delete;
  ScriptSet& operator=(const ScriptSet&) = delete;

  const redis::Scripts& for_stores() const { return for_stores_; }
  const std::vector<lua::Script>& for_servers() const { return for_servers_; }
  // Whether every change was applied: one that was not would prove nothing.
  bool all_applied() const { return all_applied_; }

 private:
  lua::Script changed(const lua::Script& script, const std::vector<TextChange>& changes,
                      std::vector<bool>& applied);

  std::deque<std::string> texts_;  // stay where they are
  redis::Scripts for_stores_;
  std::vector<lua::Script> for_servers_;
  bool all_applied_ = true;
};

// The Lua that servers embed (5.1), with `redis.call` and what else the scripts use of it. One for
// all simulated servers: a script keeps nothing from one call to the next.
class ScriptEngine {
 public:
  ScriptEngine();
  ScriptEngine(const ScriptEngine&) = delete;
  ScriptEngine& operator=(const ScriptEngine&) = delete;
  ~ScriptEngine();

  // Compiled once for each digest.
  Reply run(Database& database, const lua::Script& script, const Database::Words& keys,
            const Database::Words& arguments);

 private:
  static int redis_call(lua_State* lua);
  static int redis_pcall(lua_State* lua);
  static bool call_command(lua_State* lua);
  void push_function(const lua::Script& script);

  lua_State* lua_;
  std::unordered_map<std::string, int> compiled_;
};

}  // namespace rlock::fake
