#include <doctest/doctest.h>

#include <filesystem>
#include <functional>

#include "lock/poller.hpp"
#include "redis/store/external_store.hpp"
#include "support/fake_server.hpp"
#include "unit/redis_call.hpp"

using namespace rlock;
using lock::LockName;
using lock::Owner;
using lock::OwnerEnd;

namespace {

constexpr Millis kLong{60'000};

LockName name(const char* text = "job") {
  return *LockName::parse(text);
}

Owner owner(char digit) {
  return *Owner::parse(std::string(32, digit));
}

template <class T>
T ask(lock::InFlight<T> request) {
  lock::SystemPoller poller;
  auto result = lock::finish(poller, std::move(request), poller.now() + kLong, "server");
  if (!result) FAIL(result.error().text);
  return *std::move(result);
}

lock::AcquireCall acquire_call(char digit, lock::Queueing queueing = lock::Queueing::wait) {
  lock::AcquireCall out{{name(), owner(digit)}};
  out.queueing = queueing;
  return out;
}

// Both kinds of store, each on an empty server.
void with_each(const std::function<void(lock::LockServer&, test::RedisServer&)>& body) {
  test::RedisServer server;
  redis::PlainStore plain(std::make_unique<redis::Connection>(test::at_socket(server)));
  redis::RedissonStore redisson(test::at_socket(server));
  for (lock::LockServer* store :
       {static_cast<lock::LockServer*>(&plain), static_cast<lock::LockServer*>(&redisson)}) {
    server.cli({"FLUSHALL"});
    body(*store, server);
  }
}

}  // namespace

TEST_CASE("an acquire that is sent again is the same lock with a full lease") {
  with_each([](lock::LockServer& store, test::RedisServer& server) {
    CHECK(std::holds_alternative<lock::Granted>(ask(store.acquire(acquire_call('a')))));
    server.cli({"PEXPIRE", "job", "5000"});
    CHECK(std::holds_alternative<lock::Granted>(ask(store.acquire(acquire_call('a')))));
    CHECK(std::stoi(server.cli({"PTTL", "job"})) > 20'000);
    auto seen = ask(store.inspect({name()}));
    REQUIRE(seen.holders.size() == 1);
    CHECK(seen.holders.front().owner == owner('a').text());
    CHECK(seen.holders.front().entries == 1);
    CHECK(ask(store.release({name(), owner('a')})).ending == OwnerEnd::released);
    CHECK(server.cli({"EXISTS", "job"}) == "0");
  });
}

TEST_CASE("a plain waiter polls every 50 to 250 ms, sooner if the lease ends before") {
  test::RedisServer server;
  redis::PlainStore store(std::make_unique<redis::Connection>(test::at_socket(server)));
  ask(store.acquire(acquire_call('a')));
  for (int i = 0; i < 50; ++i) {
    auto again = *std::get<lock::Queued>(ask(store.acquire(acquire_call('b')))).look_again;
    CHECK(again >= Millis(50));
    CHECK(again <= Millis(250));
  }
  // On a busy machine so short a lease may be over before the request arrives.
  std::optional<Millis> again;
  for (int i = 0; i < 100 && !again; ++i) {
    server.cli({"SET", "job", "other", "PX", "30"});
    auto reply = ask(store.acquire(acquire_call('b')));
    if (auto* queued = std::get_if<lock::Queued>(&reply)) again = queued->look_again;
  }
  REQUIRE(again);
  CHECK(*again <= Millis(31));
}

TEST_CASE("a renewal never shortens nor restores a lease, and names the owner that took it") {
  with_each([](lock::LockServer& store, test::RedisServer& server) {
    ask(store.acquire(acquire_call('a')));
    server.cli({"PEXPIRE", "job", "100000"});
    const lock::RenewCall renew{
        {name(), owner('a')}, lock::Entry::outer(), lock::Restore{{7}, 0, std::nullopt}};
    CHECK(std::holds_alternative<lock::Renewal>(ask(store.renew(renew))));
    CHECK(std::stoi(server.cli({"PTTL", "job"})) > 60'000);
    server.cli({"DEL", "job"});
    auto lost = ask(store.renew(renew));
    CHECK(std::get<lock::Lost>(lost).how == lock::LostHow::gone);
    CHECK(server.cli({"EXISTS", "job"}) == "0");
    ask(store.acquire(acquire_call('b')));
    lost = ask(store.renew(renew));
    CHECK(std::get<lock::Lost>(lost).how == lock::LostHow::taken);
    CHECK(std::get<lock::Lost>(lost).by->owner == owner('b').text());
  });
}

TEST_CASE(
    "a release whose reply was lost is confirmed by the next one, a lease that was lost is "
    "reported") {
  with_each([](lock::LockServer& store, test::RedisServer&) {
    ask(store.acquire(acquire_call('a')));
    CHECK(ask(store.release({name(), owner('a')})).ending == OwnerEnd::released);
    CHECK(ask(store.release({name(), owner('a')})).ending == OwnerEnd::released);
    CHECK(ask(store.release({name(), owner('b')})).ending == OwnerEnd::unknown);
  });
}

TEST_CASE("a release that never reached the server does not confirm a lease that had expired") {
  with_each([](lock::LockServer& store, test::RedisServer& server) {
    const std::string away = server.socket_path() + ".away";
    server.cli({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    std::filesystem::rename(server.socket_path(), away);
    lock::SystemPoller poller;
    auto unsent = store.release({name(), owner('a')});
    CHECK_FALSE(lock::finish(poller, std::move(unsent), poller.now() + kLong, "server"));
    std::filesystem::rename(away, server.socket_path());
    CHECK(ask(store.release({name(), owner('a')})).ending == OwnerEnd::unknown);
  });
}

TEST_CASE("a release whose connection was cut before the reply may have done its work") {
  test::FakeServer server([](test::FakeServer::Peer& peer, int connection) {
    peer.await("\r\njob\r\n");
    if (connection > 0) peer.send("+OK\r\n*1\r\n$4\r\ngone\r\n");
    if (connection > 0) peer.await_hang_up();
  });
  redis::PlainStore store(std::make_unique<redis::Connection>(test::at_port(server.port())));
  lock::SystemPoller poller;
  auto cut = store.release({name(), owner('a')});
  CHECK_FALSE(lock::finish(poller, std::move(cut), poller.now() + kLong, "server"));
  CHECK(ask(store.release({name(), owner('a')})).ending == OwnerEnd::released);
}

TEST_CASE("a server that still loads its data has released nothing") {
  test::FakeServer server([](test::FakeServer::Peer& peer, int) {
    const std::string again = "\r\njob\r\n";
    peer.next(again);
    peer.send("-LOADING\r\n-LOADING Redis is loading the dataset in memory\r\n");
    peer.next(again);
    peer.send("*1\r\n$4\r\ngone\r\n");
    peer.await_hang_up();
  });
  redis::PlainStore store(std::make_unique<redis::Connection>(test::at_port(server.port())));
  lock::SystemPoller poller;
  auto early = store.release({name(), owner('a')});
  CHECK_FALSE(lock::finish(poller, std::move(early), poller.now() + kLong, "server"));
  CHECK(ask(store.release({name(), owner('a')})).ending == OwnerEnd::unknown);
}

TEST_CASE("a time left that no lease has overflows nothing") {
  for (const char* left : {"9223372036854775807", "-9223372036854775808"}) {
    CAPTURE(left);
    test::FakeServer server([left](test::FakeServer::Peer& peer, int) {
      peer.await("\r\njob\r\n");
      peer.send("+OK\r\n*4\r\n$4\r\nheld\r\n$1\r\nx\r\n:1\r\n:" + std::string(left) + "\r\n");
      peer.await_hang_up();
    });
    redis::RedissonStore store(test::at_port(server.port()));
    auto queued = std::get<lock::Queued>(ask(store.acquire(acquire_call('a'))));
    CHECK(*queued.look_again > Millis(0));
    const lock::Holder* holder = lock::holder_in(queued.obstacle);
    REQUIRE(holder != nullptr);
    CHECK(holder->left.has_value() == (left[0] != '-'));
    CHECK(holder->left < Millis::max());
  }
}

TEST_CASE("a redisson waiter subscribes first; a message wakes it, at any time after") {
  test::RedisServer server;
  redis::RedissonStore store(test::at_socket(server));
  const std::string channel = "redisson_lock__channel:{job}";
  CHECK(ask(store.wait_for_wake(name(), owner('a'), kLong)) == lock::Wake::slept);
  // Before it listens: kept for it.
  CHECK(server.cli({"PUBLISH", channel, "0"}) == "1");
  CHECK(ask(store.wait_for_wake(name(), owner('a'), kLong)) == lock::Wake::woken);
  CHECK(ask(store.wait_for_wake(name(), owner('a'), Millis(1))) == lock::Wake::slept);
  auto waiting = store.wait_for_wake(name(), owner('a'), kLong);
  CHECK_FALSE(waiting->advance(BootClock::now()));
  CHECK(server.cli({"PUBLISH", channel, "0"}) == "1");
  CHECK(ask(std::move(waiting)) == lock::Wake::woken);
}

TEST_CASE("a redisson waiter whose subscription is cut learns of it and subscribes again") {
  test::RedisServer server;
  redis::RedissonStore store(test::at_socket(server));
  ask(store.wait_for_wake(name(), owner('a'), kLong));
  auto waiting = store.wait_for_wake(name(), owner('a'), kLong);
  CHECK_FALSE(waiting->advance(BootClock::now()));
  CHECK(server.cli({"CLIENT", "KILL", "TYPE", "pubsub"}) == "1");
  lock::SystemPoller poller;
  auto cut = lock::finish(poller, std::move(waiting), poller.now() + kLong, "server");
  REQUIRE_FALSE(cut);
  CHECK(cut.error().retry == Retry::later);
  CHECK(ask(store.wait_for_wake(name(), owner('a'), kLong)) == lock::Wake::slept);
  CHECK(server.cli({"PUBLISH", "redisson_lock__channel:{job}", "0"}) == "1");
}

TEST_CASE("an ACL without PEXPIRE leaves no lock without an expiry") {
  test::RedisServer server;
  server.cli({"ACL", "SETUSER", "default", "-pexpire"});
  redis::RedissonStore store(test::at_socket(server));
  lock::SystemPoller poller;
  auto reply =
      lock::finish(poller, store.acquire(acquire_call('a')), poller.now() + kLong, "server");
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::denied);
  CHECK(server.cli({"EXISTS", "job"}) == "0");
}
