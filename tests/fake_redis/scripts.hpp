#pragma once

#include <string>
#include <unordered_map>

#include "fake_redis/database.hpp"
#include "lua/scripts.hpp"

struct lua_State;

namespace rlock::fake {

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
