#include <doctest/doctest.h>

#include "redis/net/dialer.hpp"
#include "redis_call.hpp"
#include "support/fake_server.hpp"

using namespace rlock;
using redis::Connection;
using test::at_port;
using test::call;
using test::FakeServer;
using test::reply_text;

namespace {

constexpr Millis kPatience{100};
// Far above what a loaded machine adds, far below what a stretched deadline would take.
constexpr Millis kLimit{5'000};

struct Ended {
  std::string text;
  ErrorKind kind;
  Retry retry;
  Millis took;
};

// One PING to a server of this script; every outcome must be an Error.
Ended ping(FakeServer::Script script, redis::Server server = at_port(0, kPatience)) {
  FakeServer fake(std::move(script));
  server.port = fake.port();
  Connection connection(server);
  auto before = BootClock::now();
  auto reply = call(connection, {"PING"}, kLimit * 2);
  auto took = std::chrono::duration_cast<Millis>(BootClock::now() - before);
  REQUIRE_FALSE(reply);
  return {reply.error().text, reply.error().kind, reply.error().retry, took};
}

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a trickled set-up reply does not stretch the deadline") {
  // 2000 bytes at 10 ms each would be 20 s.
  Ended ended = ping(
      [](auto& peer, int) { peer.trickle("+" + std::string(2000, 'x') + "\r\n", Millis(10)); });
  CHECK(mentions(ended.text, "timed out"));
  CHECK(ended.took < kLimit);
}

TEST_CASE("a trickled reply to the command leaves the deadline to the driver") {
  FakeServer fake([](auto& peer, int) {
    peer.send("+OK\r\n");
    peer.trickle("+PONG\r\n", Millis(30));
    peer.await_hang_up();
  });
  Connection connection(at_port(fake.port(), kPatience));
  CHECK(reply_text(call(connection, {"PING"})) == "PONG");
}

TEST_CASE("an unresolved name fails at the deadline, or earlier with the reason") {
  redis::Server server = at_port(1, kPatience);
  server.host = "rlock-test.invalid";
  Connection connection(server);
  auto before = BootClock::now();
  auto reply = call(connection, {"PING"});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::unavailable);
  CHECK(mentions(reply.error().text, "cannot connect to rlock-test.invalid:1: "));
  CHECK(BootClock::now() - before < kLimit);
}

TEST_CASE("when AUTH is refused the command's own reply is not believed") {
  redis::Server server = at_port(0, kLimit);
  server.password = "canary";
  struct Row {
    const char* reply;
    ErrorKind kind;
    Retry retry;
  };
  const Row rows[] = {
      {"-WRONGPASS invalid canary\r\n", ErrorKind::denied, Retry::never},
      {"-ERR invalid password\r\n", ErrorKind::denied, Retry::never},
      {"-ERR unknown command 'AUTH', with args beginning with: 'canary'\r\n", ErrorKind::denied,
       Retry::never},
      {"-canary\r\n", ErrorKind::denied, Retry::never},
      {"-NOPERM canary\r\n", ErrorKind::denied, Retry::never},
      {"-DENIED Redis is running in protected mode\r\n", ErrorKind::denied, Retry::never},
      {"-LOADING canary\r\n", ErrorKind::unavailable, Retry::later},
      {"-MASTERDOWN canary\r\n", ErrorKind::unavailable, Retry::later},
      {"-ERR max number of clients reached\r\n", ErrorKind::unavailable, Retry::later},
  };
  for (const Row& row : rows) {
    CAPTURE(row.reply);
    Ended ended = ping(
        [&](auto& peer, int) {
          peer.await("rlock\r\n");
          peer.send(row.reply + std::string("+OK\r\n+PONG\r\n"));
          peer.await_hang_up();
        },
        server);
    CHECK(ended.kind == row.kind);
    CHECK(ended.retry == row.retry);
    CHECK_FALSE(mentions(ended.text, "canary"));
  }
}

TEST_CASE("the client's name and the first command come in one write") {
  FakeServer fake([](auto& peer, int) {
    if (!peer.await("PING\r\n")) return;
    CHECK(peer.received() ==
          "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$5\r\nrlock\r\n*1\r\n$4\r\nPING\r\n");
    peer.send("+OK\r\n+PONG\r\n");
    peer.await_hang_up();
  });
  Connection connection(at_port(fake.port()));
  CHECK(reply_text(call(connection, {"PING"})) == "PONG");
}

TEST_CASE("user and database are answered before the first command is sent") {
  FakeServer fake([](auto& peer, int) {
    if (!peer.await("rlock\r\n")) return;
    CHECK(peer.received() ==
          "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n"
          "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$5\r\nrlock\r\n");
    peer.send("+OK\r\n+OK\r\n+OK\r\n");
    if (peer.await("PING\r\n")) peer.send("+PONG\r\n");
    peer.await_hang_up();
  });
  redis::Server server = at_port(fake.port());
  server.user = "u";
  server.password = "p";
  server.db = 2;
  Connection connection(server);
  CHECK(reply_text(call(connection, {"PING"})) == "PONG");
}

TEST_CASE("bytes beyond a reply are never taken for the next command's") {
  FakeServer fake([](auto& peer, int number) {
    peer.await("PING\r\n");
    peer.send(number == 0 ? "+OK\r\n+first\r\n+stray\r\n" : "+OK\r\n+second\r\n");
    peer.await_hang_up();
  });
  Connection connection(at_port(fake.port()));
  CHECK(reply_text(call(connection, {"PING"})) == "first");
  CHECK(reply_text(call(connection, {"PING"})) == "second");
  CHECK(fake.connections() >= 1);
}

TEST_CASE("the address that answered last serves when the name cannot be resolved") {
  FakeServer fake([](auto& peer, int) {
    peer.await("PING\r\n");
    peer.send("+OK\r\n+PONG\r\n");
  });
  redis::Server server = at_port(fake.port(), Millis(1'000));
  server.addresses = std::make_shared<redis::AddressMemory>();
  Connection numeric(server);
  REQUIRE(reply_text(call(numeric, {"PING"})) == "PONG");
  server.host = "rlock-test.invalid";
  Connection named(server);
  CHECK(reply_text(call(named, {"PING"})) == "PONG");
}
