// Whether the simulated server answers as a real one does: histories are repeated there, script by
// script at the times of the simulation, and each reply and the keys in the end are compared.
#include <doctest/doctest.h>

#include <algorithm>

#include "redis/link/reply.hpp"
#include "simulation/fleet.hpp"
#include "simulation/worlds.hpp"
#include "support/frozen_clock.hpp"

namespace rlock::sim {
namespace {

// A server whose wall clock stands still where it is set.
class FrozenServer {
 public:
  FrozenServer() {
    connection_.reset(redisConnectUnix(server_->socket_path().c_str()));
    REQUIRE(connection_ != nullptr);
    REQUIRE(connection_->err == 0);
  }

  void set(int64_t micros) { clock_.set(micros); }

  redis::ReplyPtr run(const Command& words) {
    const std::string bytes = redis::encode(words);
    void* reply = nullptr;
    redisAppendFormattedCommand(connection_.get(), bytes.data(), bytes.size());
    REQUIRE(redisGetReply(connection_.get(), &reply) == REDIS_OK);
    return redis::ReplyPtr(static_cast<redisReply*>(reply));
  }

 private:
  struct FreeContext {
    void operator()(redisContext* context) const noexcept { redisFree(context); }
  };
  test::FrozenClock clock_;
  std::unique_ptr<test::RedisServer> server_ = clock_.serve();
  std::unique_ptr<redisContext, FreeContext> connection_;
};

std::string as_text(const redisReply& reply) {
  std::string text = std::to_string(reply.type) + "(";
  if (reply.type == REDIS_REPLY_INTEGER) text += std::to_string(reply.integer);
  text += redis::text_of(reply);
  for (size_t i = 0; i < reply.elements; ++i) text += as_text(*reply.element[i]) + ",";
  return text + ")";
}

std::string as_text(const std::string& bytes) {
  redis::ReplyReader reader;
  reader.feed(bytes.data(), bytes.size());
  return as_text(**reader.next());
}

// The same text as keys_as_text() gives.
constexpr const char* kKeysAsText = R"(
  local lines, keys = {}, redis.call('KEYS', '*')
  table.sort(keys)
  for _, key in ipairs(keys) do
    local kind = redis.call('TYPE', key).ok
    local text = key .. ' until ' .. string.format('%.0f', redis.call('PEXPIRETIME', key)) .. ':'
    if kind == 'string' then text = text .. ' ' .. redis.call('GET', key) end
    if kind == 'list' then
      local list = redis.call('LRANGE', key, 0, -1)
      for _, element in ipairs(list) do text = text .. ' ' .. element end
    end
    local rows = kind == 'hash' and redis.call('HGETALL', key) or
                 kind == 'zset' and redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') or {}
    local fields = {}
    for i = 1, #rows, 2 do fields[#fields + 1] = ' ' .. rows[i] .. '=' .. rows[i + 1] end
    if kind == 'hash' then table.sort(fields) end
    lines[#lines + 1] = text .. table.concat(fields)
  end
  return lines)";

std::string difference_in_keys(FrozenServer& server, const std::vector<std::string>& simulated) {
  const auto keys = server.run({"EVAL", kKeysAsText, "0"});
  for (size_t i = 0; i < std::max(keys->elements, simulated.size()); ++i) {
    const std::string real(i < keys->elements ? redis::text_of(*keys->element[i]) : "nothing");
    const std::string other(i < simulated.size() ? simulated[i] : "nothing");
    if (real != other) return real + " instead of " + other;
  }
  return "";
}

// The first difference; "" where there is none.
std::string difference(FrozenServer& server, const Outcome& outcome) {
  server.run({"FLUSHALL"});
  for (const lua::Script* script :
       {&lua::acquire, &lua::renew, &lua::release, &lua::force_unlock, &lua::inspect}) {
    server.run({"SCRIPT", "LOAD", std::string(script->text)});
  }
  for (const JournalEntry& entry : outcome.journal) {
    if (entry.server != 0) continue;
    server.set(entry.micros);
    const std::string real = as_text(*server.run(entry.words));
    if (real != as_text(entry.reply)) {
      return entry.words[1] + ": " + real + " instead of " + as_text(entry.reply);
    }
    if (entry.keys.empty()) continue;
    if (auto text = difference_in_keys(server, entry.keys); !text.empty()) return text;
  }
  return "";
}

}  // namespace

TEST_CASE("a real server gives every reply that the simulated one gave, and has the same keys") {
  FrozenServer server;
  size_t scripts = 0;
  for (const char* world :
       {"one_server", "modes", "quorum_of_3", "once", "supersede", "operators"}) {
    Setting setting = world_named(world);
    std::erase_if(setting.faults,
                  [](const FaultRate& rate) { return rate.kind == FaultKind::forget; });
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Outcome outcome = play(make_scenario(setting, seed), {}, {true, false});
      CAPTURE(world);
      CAPTURE(seed);
      CHECK(difference(server, outcome) == "");
      for (const JournalEntry& entry : outcome.journal) scripts += entry.server == 0 ? 1 : 0;
    }
  }
  MESSAGE(scripts, " scripts of 18 histories compared with a real server");
}

}  // namespace rlock::sim
