// Requests that count only once replicas have confirmed them; tests/topology has replicas.
#include <doctest/doctest.h>

#include "redis/store/redis_store.hpp"
#include "redis_call.hpp"

using namespace rlock;
using test::at_socket;
using test::call;
using test::finish;
using test::RedisServer;
using test::reply_text;

namespace {

lock::AcquireCall claim(const char* owner) {
  lock::AcquireCall call{*lock::LockName::parse("job"), lock::Owner::external(owner)};
  call.ttl = Millis(1'000);
  call.replicas = 1;
  return call;
}

size_t waits(const RedisServer& server) {
  const std::string stats = server.cli({"INFO", "commandstats"});
  const std::string mark = "cmdstat_wait:calls=";
  const size_t at = stats.find(mark);
  return at == stats.npos ? 0 : std::stoul(stats.substr(at + mark.size()));
}

}  // namespace

TEST_CASE("a request that is not granted waits for no replica") {
  RedisServer real;
  redis::RedisStore holder(at_socket(real), "rlock:");
  lock::AcquireCall first = claim("one");
  first.ttl = Millis(60'000);
  first.replicas = 0;
  REQUIRE(finish(*holder.acquire(first)));
  redis::RedisStore waiter(at_socket(real), "rlock:");
  auto queued = finish(*waiter.acquire(claim("two")));
  REQUIRE(queued);
  CHECK(std::holds_alternative<lock::Queued>(*queued));
  CHECK(waits(real) == 0);
}

TEST_CASE("a command that follows another goes over the same connection, or not at all") {
  RedisServer real;
  redis::Connection connection(at_socket(real));
  CHECK(reply_text(call(connection, {"SET", "k", "v"})) == "OK");
  connection.follow({"GET", "k"});
  CHECK(reply_text(finish(connection)) == "v");
  real.cli({"CLIENT", "KILL", "TYPE", "normal"});
  connection.follow({"SET", "k", "later"});
  CHECK_FALSE(finish(connection));
  CHECK(reply_text(call(connection, {"GET", "k"})) == "v");
}
