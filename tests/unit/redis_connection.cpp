#include "redis/link/connection.hpp"

#include <doctest/doctest.h>

#include <atomic>

#include "redis/link/handshake.hpp"
#include "redis/store/redis_store.hpp"
#include "redis_call.hpp"
#include "support/fake_server.hpp"

using namespace rlock;
using redis::Connection;
using test::at_port;
using test::at_socket;
using test::call;
using test::FakeServer;
using test::Listen;
using test::RedisServer;
using test::reply_text;

namespace {

using Words = std::vector<std::string>;

// Drives a request that gets no reply until `so` is true.
template <class Condition>
void drive_until(lock::Request& request, Condition so) {
  const auto until = BootClock::now() + std::chrono::seconds(60);
  while (!so() && BootClock::now() < until) {
    REQUIRE_FALSE(request.advance(BootClock::now()));
    std::vector<pollfd> fds;
    request.wants(fds);
    poll(fds.data(), fds.size(), 5);
  }
}

}  // namespace

TEST_CASE("a password that a server refuses or quotes back is an error that does not contain it") {
  for (bool without_auth : {false, true}) {
    RedisServer real(without_auth ? Words{"--rename-command", "AUTH", ""} : Words{});
    redis::Server server = at_socket(real);
    server.password = "canary";
    Connection connection(server);
    auto reply = call(connection, {"PING"});
    REQUIRE_FALSE(reply);
    CHECK(reply.error().kind == ErrorKind::denied);
    CHECK(reply.error().text.find("canary") == std::string::npos);
  }
}

TEST_CASE("a command is not sent if the handshake did not lead to the right user and database") {
  RedisServer real({"--user", "bob", "on", ">right", "~*", "+@all"});
  redis::Server server = at_socket(real);
  SUBCASE("no such database") {
    server.db = 99;
  }
  SUBCASE("a wrong password, where the default user needs none") {
    server.user = "bob";
    server.password = "wrong";
  }
  SUBCASE("a member of a quorum that may have forgotten leases") {
    server.members = std::make_shared<redis::MemberRegistry>();
  }
  Connection connection(server);
  CHECK_FALSE(call(connection, {"SET", "k", "v"}));
  CHECK_FALSE(connection.may_have_arrived());
  CHECK(real.cli({"DBSIZE"}) == "0");
}

TEST_CASE("a replica that was to be the master is sent no command") {
  FakeServer fake([](FakeServer::Peer& peer, int) {
    peer.await("rlock\r\n");
    peer.send("*3\r\n$5\r\nslave\r\n:0\r\n*0\r\n+OK\r\n");
    peer.await_hang_up();
    CHECK(peer.received().find("SET\r\n") == std::string::npos);
  });
  redis::Server server = at_port(fake.port());
  server.role = redis::Role::master;
  Connection connection(server);
  CHECK_FALSE(call(connection, {"SET", "k", "v"}));
}

TEST_CASE("a user without CLIENT still gets its commands through, and denials of those as values") {
  RedisServer real({"--user", "bob", "on", "nopass", "~*", "+get"});
  redis::Server server = at_socket(real);
  server.user = "bob";
  Connection connection(server);
  CHECK(reply_text(call(connection, {"GET", "k"})) == "");
  auto denied = call(connection, {"SET", "k", "v"});
  REQUIRE(denied);
  CHECK((*denied)->type == REDIS_REPLY_ERROR);
  CHECK(reply_text(denied).starts_with("NOPERM"));
}

TEST_CASE("a command in flight may be abandoned for another one") {
  RedisServer real;
  Connection connection(at_socket(real));
  auto blocked = call(connection, {"BLPOP", "list", "0"}, Millis(20));
  REQUIRE_FALSE(blocked);
  REQUIRE(blocked.error().kind == ErrorKind::busy);
  CHECK(reply_text(call(connection, {"ECHO", "mine"})) == "mine");
  connection.drop();
  CHECK(reply_text(call(connection, {"ECHO", "again"})) == "again");
}

TEST_CASE("a large command and a large reply pass in pieces") {
  RedisServer real({}, Listen::unix_socket_and_tcp);
  Connection connection(at_port(real.port()));
  const std::string large(8 << 20, 'x');
  CHECK(reply_text(call(connection, {"SET", "k", large})) == "OK");
  CHECK(reply_text(call(connection, {"GET", "k"})) == large);
}

TEST_CASE(
    "the connection to a server that became a replica is closed: its name may lead to a new "
    "master") {
  FakeServer fake([](FakeServer::Peer& peer, int number) {
    peer.await("EVALSHA");
    peer.send("+OK\r\n");
    peer.send(number == 0 ? "-READONLY You can't write against a read only replica.\r\n"
                          : "*1\r\n$5\r\nfreed\r\n");
    peer.await_hang_up();
  });
  redis::RedisStore store(at_port(fake.port()), "rlock:");
  auto owner = *lock::Owner::parse("0123456789abcdef0123456789abcdef");
  const lock::ReleaseCall release{*lock::LockName::parse("job"), owner};
  auto refused = test::finish(*store.release(release));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().retry == Retry::later);
  CHECK(test::finish(*store.release(release)));
  CHECK(fake.connections() == 2);
}

TEST_CASE("CLIENT is left out from the second attempt on, for a proxy that hangs up on it") {
  FakeServer proxy([](FakeServer::Peer& peer, int number) {
    peer.await("ECHO");
    const bool named = peer.received().find("CLIENT") != std::string::npos;
    CHECK(named == (number == 0));
    if (named) return;
    peer.send("+PONG\r\n+mine\r\n");
    peer.await_hang_up();
  });
  Connection connection(at_port(proxy.port()));
  auto cut = call(connection, {"ECHO", "mine"});
  REQUIRE_FALSE(cut);
  CHECK(cut.error().retry == Retry::later);
  CHECK(cut.error().text.find("CLIENT SETNAME") != std::string::npos);
  CHECK(cut.error().text.find("TLS") == std::string::npos);
  CHECK(reply_text(call(connection, {"ECHO", "mine"})) == "mine");
  connection.drop();
  CHECK(reply_text(call(connection, {"ECHO", "mine"})) == "mine");
}

TEST_CASE("if the peer hangs up during the handshake, the error names the command it hung up on") {
  FakeServer closed([](FakeServer::Peer& peer, int) { peer.await("ROLE"); });
  redis::Server server = at_port(closed.port());
  server.role = redis::Role::master;
  Connection connection(server);
  CHECK(reply_text(call(connection, {"PING"})).find("closed the connection on ROLE") !=
        std::string::npos);
}

TEST_CASE("an abandoned reply is read to its end, and nothing is sent meanwhile") {
  std::atomic<bool> asked = false;
  std::atomic<bool> abandoned = false;
  FakeServer fake([&](FakeServer::Peer& peer, int) {
    asked = peer.next("EVALSHA");
    while (!abandoned) continue;
    peer.send("+OK\r\n-NOSCRIPT No matching script.\r\n");
    CHECK(peer.next("SCAN"));
    peer.send("*2\r\n$1\r\n0\r\n*0\r\n");
    peer.await_hang_up();
    CHECK(peer.received().find("EVAL") == std::string::npos);
  });
  redis::RedisStore store(at_port(fake.port()), "rlock:");
  const auto name = *lock::LockName::parse("job");
  auto acquire = store.acquire({name, *lock::Owner::parse("0123456789abcdef0123456789abcdef")});
  CHECK_FALSE(acquire->finish_reading(BootClock::now()));
  drive_until(*acquire, [&] { return asked.load(); });
  abandoned = true;
  while (!acquire->finish_reading(BootClock::now())) continue;
  acquire.reset();
  CHECK(test::finish(*store.list_names("")));
  CHECK(fake.connections() == 1);
}

TEST_CASE("over a fresh connection to a server of a quorum a release brings its script") {
  std::atomic<bool> received = false;
  FakeServer fake([&](FakeServer::Peer& peer, int) {
    received = peer.await("EVALSHA") && peer.await(lua::release.text);
    peer.await_hang_up();
  });
  redis::Server server = at_port(fake.port());
  server.members = std::make_shared<redis::MemberRegistry>();
  redis::RedisStore store(server, "rlock:");
  auto owner = *lock::Owner::parse("0123456789abcdef0123456789abcdef");
  auto release = store.release({*lock::LockName::parse("job"), owner});
  drive_until(*release, [&] { return received.load(); });
  CHECK(received);
}
