#include "fake_redis/scripts.hpp"

#include <lua.hpp>
#include <stdexcept>

namespace rlock::fake {
namespace {

// Its address is the key under which the database of the running script is kept.
char database_key;

std::string_view text_at(lua_State* lua, int index) {
  size_t size = 0;
  const char* text = lua_tolstring(lua, index, &size);
  return {text == nullptr ? "" : text, size};
}

void push_text(lua_State* lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
}

void push_field(lua_State* lua, const char* field, std::string_view text) {
  lua_createtable(lua, 0, 1);
  push_text(lua, text);
  lua_setfield(lua, -2, field);
}

void push_words(lua_State* lua, const char* global, const Database::Words& words) {
  lua_createtable(lua, static_cast<int>(words.size()), 0);
  for (size_t i = 0; i < words.size(); ++i) {
    push_text(lua, words[i]);
    lua_rawseti(lua, -2, static_cast<int>(i) + 1);
  }
  lua_setglobal(lua, global);
}

void push_reply(lua_State* lua, const Reply& reply) {
  switch (reply.type) {
    case Reply::Type::nil:
      return lua_pushboolean(lua, 0);
    case Reply::Type::number:
      return lua_pushnumber(lua, static_cast<lua_Number>(reply.number));
    case Reply::Type::text:
      return push_text(lua, reply.text);
    case Reply::Type::status:
      return push_field(lua, "ok", reply.text);
    case Reply::Type::error:
      return push_field(lua, "err", reply.text);
    case Reply::Type::array:
      lua_createtable(lua, static_cast<int>(reply.items.size()), 0);
      for (size_t i = 0; i < reply.items.size(); ++i) {
        push_reply(lua, reply.items[i]);
        lua_rawseti(lua, -2, static_cast<int>(i) + 1);
      }
  }
}

// A field of the table on top; "" where it has none.
std::string field_of(lua_State* lua, const char* field) {
  lua_pushstring(lua, field);
  lua_rawget(lua, -2);
  std::string text(lua_type(lua, -1) == LUA_TSTRING ? text_at(lua, -1) : "");
  lua_pop(lua, 1);
  return text;
}

// What a script returned, as the server converts it: an array ends at its first nil.
Reply reply_on_top(lua_State* lua) {
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
      return Reply::of(std::string(text_at(lua, -1)));
    case LUA_TNUMBER:
      return Reply::of(static_cast<int64_t>(lua_tonumber(lua, -1)));
    case LUA_TBOOLEAN:
      return lua_toboolean(lua, -1) != 0 ? Reply::of(1) : Reply{};
    case LUA_TTABLE:
      break;
    default:
      return {};
  }
  if (auto error = field_of(lua, "err"); !error.empty()) return Reply::error(error);
  if (auto status = field_of(lua, "ok"); !status.empty()) {
    return {Reply::Type::status, 0, status};
  }
  Reply array = Reply::array();
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    const bool over = lua_isnil(lua, -1);
    if (!over) array.items.push_back(reply_on_top(lua));
    lua_pop(lua, 1);
    if (over) return array;
  }
}

// As Redis 8.0.2 of Debian 13 and 8.2.9 do it: with a wrong number of words it is an error, too.
int acl_check(lua_State* lua) {
  const std::string_view command = text_at(lua, 1);
  const bool known = Database::knows(command);
  if (!known || !Database::takes(command, static_cast<size_t>(lua_gettop(lua)))) {
    push_field(lua, "err",
               known ? "ERR Wrong number of args for redis.acl_check_cmd()"
                     : "ERR Invalid command passed to redis.acl_check_cmd()");
    return lua_error(lua);
  }
  lua_pushboolean(lua, 1);
  return 1;
}

int error_reply(lua_State* lua) {
  push_field(lua, "err", text_at(lua, 1));
  return 1;
}

}  // namespace

ScriptEngine::ScriptEngine() : lua_(luaL_newstate()) {
  luaL_openlibs(lua_);
  lua_newtable(lua_);
  for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"call", redis_call},
                                {"pcall", redis_pcall},
                                {"acl_check_cmd", acl_check},
                                {"error_reply", error_reply}}) {
    lua_pushcfunction(lua_, function);
    lua_setfield(lua_, -2, name);
  }
  lua_setglobal(lua_, "redis");
}

ScriptEngine::~ScriptEngine() {
  lua_close(lua_);
}

// Leaves the reply on the stack; false: an error. Nothing here is left to destroy when Lua jumps.
bool ScriptEngine::call_command(lua_State* lua) {
  Database::Words words;
  std::vector<std::string> numbers;
  const int count = lua_gettop(lua);
  numbers.reserve(static_cast<size_t>(count));
  for (int i = 1; i <= count; ++i) {
    if (lua_type(lua, i) != LUA_TNUMBER) {
      words.push_back(text_at(lua, i));
      continue;
    }
    numbers.push_back(text_of(lua_tonumber(lua, i)));
    words.push_back(numbers.back());
  }
  lua_pushlightuserdata(lua, &database_key);
  lua_rawget(lua, LUA_REGISTRYINDEX);
  const Reply reply = static_cast<Database*>(lua_touserdata(lua, -1))->call(words);
  push_reply(lua, reply);
  return reply.type != Reply::Type::error;
}

int ScriptEngine::redis_call(lua_State* lua) {
  return call_command(lua) ? 1 : lua_error(lua);
}

int ScriptEngine::redis_pcall(lua_State* lua) {
  call_command(lua);
  return 1;
}

void ScriptEngine::push_function(const lua::Script& script) {
  auto [known, fresh] = compiled_.try_emplace(std::string(script.sha1), 0);
  if (fresh) {
    if (luaL_loadbuffer(lua_, script.text.data(), script.text.size(), "@user_script") != 0) {
      throw std::logic_error("a script does not compile: " + std::string(text_at(lua_, -1)));
    }
    known->second = luaL_ref(lua_, LUA_REGISTRYINDEX);
  }
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, known->second);
}

Reply ScriptEngine::run(Database& database, const lua::Script& script, const Database::Words& keys,
                        const Database::Words& arguments) {
  lua_pushlightuserdata(lua_, &database_key);
  lua_pushlightuserdata(lua_, &database);
  lua_rawset(lua_, LUA_REGISTRYINDEX);
  push_words(lua_, "KEYS", keys);
  push_words(lua_, "ARGV", arguments);
  push_function(script);
  const bool failed = lua_pcall(lua_, 0, 1, 0) != 0;
  Reply reply = reply_on_top(lua_);
  lua_settop(lua_, 0);
  if (failed && reply.type == Reply::Type::text) {
    throw std::logic_error("a script failed: " + reply.text);
  }
  return reply;
}

}  // namespace rlock::fake
