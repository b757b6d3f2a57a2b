#include "redis/link/handshake.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace rlock;

namespace {

std::optional<Error> refused(const std::string& uptime,
                             redis::Durability durability = redis::Durability::unknown) {
  std::string info = "# Server\r\nredis_version:7.0.15\r\nuptime_in_seconds:" + uptime +
                     "\r\nuptime_in_days:0\r\n";
  redisReply reply{};
  reply.type = REDIS_REPLY_STRING;
  reply.str = info.data();
  reply.len = info.size();
  return redis::check_member(reply, durability, redis::Server{});
}

}  // namespace

TEST_CASE("a server whose clock was set back is not counted for now, and is asked again") {
  for (const char* uptime : {"-1", "-9223372036854775808", "0", "59"}) {
    CAPTURE(uptime);
    auto why = refused(uptime);
    REQUIRE(why);
    CHECK(why->kind == ErrorKind::unavailable);
    CHECK(why->retry == Retry::later);
    CHECK(why->text.find("not counted until") != std::string::npos);
    CHECK_FALSE(refused(uptime, redis::Durability::every_write));
  }
  CHECK_FALSE(refused("60"));
}

TEST_CASE("a server whose uptime is unknown is refused") {
  for (const char* uptime : {"", "-", "x", "99999999999999999999"}) {
    CAPTURE(uptime);
    auto why = refused(uptime);
    REQUIRE(why);
    CHECK(why->kind == ErrorKind::denied);
  }
}
