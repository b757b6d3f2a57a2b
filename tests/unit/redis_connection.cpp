#include "redis/link/connection.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "redis/net/secret.hpp"
#include "redis/store/redis_store.hpp"
#include "redis_call.hpp"
#include "support/waiting.hpp"

using namespace rlock;
using namespace rlock::test;
using redis::Connection;

namespace {

constexpr Millis kShort{100};

// Drives a request that gets no reply until `so` is true.
void drive_until(lock::Request& request, const std::atomic<bool>& so) {
  CHECK(eventually([&] {
    if (!so) REQUIRE_FALSE(request.advance(BootClock::now()));
    return so.load();
  }));
}

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

// It counts only once a replica has confirmed it; tests/topology has replicas.
lock::AcquireCall claim(const char* owner) {
  lock::AcquireCall call{{*lock::LockName::parse("job"), lock::Owner::external(owner)}};
  call.ttl = Millis(1'000);
  call.replicas = 1;
  return call;
}

// Its source never answers, as a file on a mount whose server is gone.
class StuckSecret final : public redis::Secret {
 public:
  explicit StuckSecret(std::string last) : last_(std::move(last)) {}
  std::string current() override { return last_; }
  std::optional<TimePoint> refresh() override { return BootClock::now() + kShort; }
  std::optional<TimePoint> fetch(std::string_view) override { return BootClock::now() + kShort; }
  bool fetched() const override { return false; }
  int fd() const override { return -1; }

 private:
  const std::string last_;
};

size_t waits(const RedisServer& server) {
  const std::string stats = server.cli({"INFO", "commandstats"});
  const std::string mark = "cmdstat_wait:calls=";
  const size_t at = stats.find(mark);
  return at == stats.npos ? 0 : std::stoul(stats.substr(at + mark.size()));
}

}  // namespace

TEST_CASE("a member of a quorum that may have forgotten leases is sent no command") {
  RedisServer real;
  redis::Server server = at_socket(real);
  server.members = std::make_shared<redis::MemberRegistry>();
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

TEST_CASE("a command in flight may be abandoned for another command") {
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
  auto refused = finish(*store.release(release));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().retry == Retry::later);
  CHECK(finish(*store.release(release)));
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
    if (!eventually([&] { return abandoned.load(); })) return;
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
  drive_until(*acquire, asked);
  abandoned = true;
  REQUIRE(eventually([&] { return acquire->finish_reading(BootClock::now()); }));
  acquire.reset();
  CHECK(finish(*store.list_names("")));
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
  drive_until(*release, received);
}

TEST_CASE("a trickled set-up reply does not stretch the deadline") {
  // 2000 bytes at 10 ms each would be 20 s.
  Ended ended =
      ping([](auto& peer, int) { peer.trickle("+" + std::string(2000, 'x') + "\r\n", Millis(10)); },
           at_port(0, kShort));
  CHECK(ended.mentions("timed out"));
  CHECK(ended.took < kLimit);
}

TEST_CASE("a trickled reply to the command leaves the deadline to the driver") {
  FakeServer fake([](auto& peer, int) {
    peer.send("+OK\r\n");
    peer.trickle("+PONG\r\n", Millis(600));
    peer.await_hang_up();
  });
  Connection connection(at_port(fake.port(), Millis(4'000)));
  CHECK(reply_text(call(connection, {"PING"})) == "PONG");
}

TEST_CASE("an unresolved name fails at the deadline, or earlier with the reason") {
  redis::Server server = at_port(1, kShort);
  server.host = "rlock-test.invalid";
  Connection connection(server);
  auto before = BootClock::now();
  auto reply = call(connection, {"PING"});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::unavailable);
  CHECK(reply.error().text.starts_with("cannot connect to rlock-test.invalid:1: "));
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
    CHECK(ended.error.kind == row.kind);
    CHECK(ended.error.retry == row.retry);
    CHECK_FALSE(ended.mentions("canary"));
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
  CHECK(fake.connections() == 2);
}

TEST_CASE("the address that answered last serves when the name cannot be resolved") {
  FakeServer fake([](auto& peer, int) {
    peer.await("PING\r\n");
    peer.send("+OK\r\n+PONG\r\n");
  });
  redis::Server server = at_port(fake.port());
  server.addresses = std::make_shared<redis::AddressMemory>();
  Connection numeric(server);
  REQUIRE(reply_text(call(numeric, {"PING"})) == "PONG");
  server.host = "rlock-test.invalid";
  Connection named(server);
  CHECK(reply_text(call(named, {"PING"})) == "PONG");
}

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

TEST_CASE("a password whose source hangs stays in use, and a refused password ends the request") {
  RedisServer real({"--requirepass", "right"});
  redis::Server server = at_socket(real);
  server.secret = std::make_shared<StuckSecret>("right");
  Connection connection(server);
  CHECK(reply_text(call(connection, {"PING"})) == "PONG");

  server.secret = std::make_shared<StuckSecret>("wrong");
  Connection refused(server);
  auto reply = call(refused, {"PING"});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::denied);
}

TEST_CASE("a password that is rotated in its file is used by the next connection") {
  RedisServer real({"--requirepass", "old"});
  Scratch folder;
  const std::string path = folder.file("password");
  std::ofstream(path) << "old\n";
  redis::Server server = at_socket(real);
  auto secret = redis::secret_in_file(path);
  REQUIRE(secret);
  server.secret = *secret;
  Connection connection(server);
  CHECK(reply_text(call(connection, {"CONFIG", "SET", "requirepass", "new"})) == "OK");
  std::ofstream(path) << "new\n";
  connection.drop();
  CHECK(reply_text(call(connection, {"PING"})) == "PONG");
  CHECK(connection.contains_secret("it quotes new"));
}
