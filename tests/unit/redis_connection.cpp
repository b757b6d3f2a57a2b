#include "redis/link/connection.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>

#include "redis/link/voting.hpp"
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

std::string connected_clients(const RedisServer& server) {
  return server.cli({"CLIENT", "LIST", "TYPE", "normal"});
}

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

TEST_CASE("commands are answered over a unix socket, over TCP and by the name localhost") {
  RedisServer real({}, Listen::unix_socket_and_tcp);
  redis::Server by_name = at_port(real.port());
  by_name.host = "localhost";
  for (const redis::Server& server : {at_socket(real), at_port(real.port()), by_name}) {
    Connection connection(server);
    CHECK(reply_text(call(connection, {"SET", "k", "v"})) == "OK");
    CHECK(reply_text(call(connection, {"GET", "k"})) == "v");
  }
}

TEST_CASE("set-up gives user, database and client name before the first command") {
  RedisServer real({"--user", "bob", "on", ">p@ss word", "~*", "+@all"});
  redis::Server server = at_socket(real);
  server.user = "bob";
  server.password = "p@ss word";
  server.db = 3;
  Connection connection(server);
  CHECK(reply_text(call(connection, {"ACL", "WHOAMI"})) == "bob");
  CHECK(reply_text(call(connection, {"CLIENT", "GETNAME"})) == "rlock");
  CHECK(reply_text(call(connection, {"SET", "k", "v"})) == "OK");
  CHECK(real.cli({"EXISTS", "k"}) == "0");
  CHECK(real.cli({"INFO", "keyspace"}).find("db3:keys=1") != std::string::npos);
}

TEST_CASE("a refused set-up fails the command, and the password is in no text") {
  RedisServer real({"--requirepass", "right"});
  redis::Server server = at_socket(real);
  SUBCASE("no password") {}
  SUBCASE("wrong password") {
    server.password = "canary";
  }
  SUBCASE("wrong user") {
    server.user = "canary";
    server.password = "canary";
  }
  Connection connection(server);
  auto reply = call(connection, {"EVALSHA", "a", "1", "k", "1", "2", "3", "4", "5", "6", "7", "8"});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::denied);
  CHECK(reply.error().retry == Retry::never);
  CHECK(reply.error().text.find(real.socket_path()) != std::string::npos);
  CHECK(reply.error().text.find("canary") == std::string::npos);
}

TEST_CASE("a password for a server without one is an error") {
  RedisServer real;
  redis::Server server = at_socket(real);
  server.password = "canary";
  Connection connection(server);
  auto reply = call(connection, {"PING"});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::denied);
  CHECK(reply.error().text.find("canary") == std::string::npos);
}

TEST_CASE("a server that quotes AUTH back does not bring the password into a text") {
  RedisServer real({"--rename-command", "AUTH", ""});
  redis::Server server = at_socket(real);
  server.password = "canary";
  Connection connection(server);
  auto reply = call(connection, {"PING"});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::denied);
  CHECK(reply.error().text.find("canary") == std::string::npos);
}

TEST_CASE("a database that does not exist is an error, not database 0") {
  RedisServer real;
  redis::Server server = at_socket(real);
  server.db = 99;
  Connection connection(server);
  auto reply = call(connection, {"GET", "k"});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::unavailable);
  CHECK(reply.error().retry == Retry::never);
  CHECK(reply.error().text.find("cannot select database 99") != std::string::npos);
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

TEST_CASE("a server without free connections is a transient error") {
  RedisServer real({"--maxclients", "1"});
  Connection first(at_socket(real));
  REQUIRE(call(first, {"PING"}));
  Connection second(at_socket(real));
  auto reply = call(second, {"PING"});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::unavailable);
  CHECK(reply.error().retry == Retry::later);
}

TEST_CASE("a connection closed while idle is replaced without an error") {
  RedisServer real;
  Connection connection(at_socket(real));
  REQUIRE(call(connection, {"PING"}));
  SUBCASE("killed by an operator") {
    real.cli({"CLIENT", "KILL", "TYPE", "normal"});
  }
  SUBCASE("restarted") {
    real.start();
  }
  CHECK(reply_text(call(connection, {"PING"})) == "PONG");
}

TEST_CASE("a server that is not there is named with the reason") {
  RedisServer real({}, Listen::unix_socket_and_tcp);
  redis::Server gone = at_port(real.port());
  real.kill();
  Connection tcp(gone);
  auto refused = call(tcp, {"PING"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::unavailable);
  CHECK(refused.error().retry == Retry::later);
  CHECK(refused.error().text ==
        "cannot connect to 127.0.0.1:" + std::to_string(real.port()) + ": Connection refused");
  gone.transport = redis::Transport::unix_socket;
  gone.path = real.folder() + "/none.sock";
  Connection missing(gone);
  CHECK(reply_text(call(missing, {"PING"})) ==
        "! cannot connect to " + gone.path + ": No such file or directory");
  real.start();
  CHECK(reply_text(call(tcp, {"PING"})) == "PONG");
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

TEST_CASE("a blocked command ends when its client is killed") {
  RedisServer real;
  Connection connection(at_socket(real));
  connection.start({"BLPOP", "list", "0"});
  while (connected_clients(real).find("cmd=blpop") == std::string::npos) {
    REQUIRE_FALSE(connection.advance(BootClock::now()));
  }
  real.cli({"CLIENT", "KILL", "TYPE", "normal"});
  while (!connection.advance(BootClock::now())) continue;
  auto reply = connection.take();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().retry == Retry::later);
}

TEST_CASE("no socket takes the place of a closed standard descriptor, and none is inherited") {
  RedisServer real;
  int saved = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
  close(STDIN_FILENO);
  Connection connection(at_socket(real));
  auto reply = call(connection, {"BLPOP", "list", "0"}, Millis(20));
  std::vector<pollfd> fds;
  connection.wants(fds);
  dup2(saved, STDIN_FILENO);
  close(saved);
  REQUIRE(fds.size() == 1);
  CHECK(fds[0].fd > 2);
  CHECK((fcntl(fds[0].fd, F_GETFD) & FD_CLOEXEC) != 0);
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
    CHECK(peer.next("*4\r\n$6\r\nLRANGE"));
    peer.send("*0\r\n");
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
  CHECK(test::finish(*store.history(name, 1)));
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
