#include "redis/net/socket.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

using namespace rlock::redis;

namespace {

std::string text_of(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  } else {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address.storage, sizeof v6);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  }
  return text;
}

}  // namespace

TEST_CASE("numeric addresses and localhost need no look-up") {
  auto v4 = known_addresses("192.0.2.7", 6379);
  REQUIRE(v4.size() == 1);
  CHECK(text_of(v4[0]) == "192.0.2.7");
  auto v6 = known_addresses("2001:db8::1", 6379);
  REQUIRE(v6.size() == 1);
  CHECK(text_of(v6[0]) == "2001:db8::1");
  auto local = known_addresses("localhost", 6379);
  REQUIRE(local.size() == 2);
  CHECK(text_of(local[0]) == "127.0.0.1");
  CHECK(text_of(local[1]) == "::1");
  CHECK(known_addresses("db1.example", 6379).empty());
}

TEST_CASE("a look-up ends with addresses or with the reason why there are none") {
  for (const char* name : {"127.0.0.1", "no such host.invalid"}) {
    auto resolution = Resolution::start(name, 6379, AF_INET);
    REQUIRE(resolution);
    pollfd entry{resolution->fd(), POLLIN, 0};
    REQUIRE(poll(&entry, 1, 30'000) == 1);
    REQUIRE(resolution->done());
    auto outcome = resolution->take();
    CHECK(outcome.addresses.empty() != outcome.failure.empty());
  }
}

TEST_CASE("a look-up that ended long before a connect begins is asked anew") {
  Server server;
  server.host = "rlock-test.invalid";
  server.addresses = std::make_shared<AddressMemory>();
  server.addresses->keep(known_addresses("127.0.0.1", 1).front());
  const auto limit = server.connect_timeout;
  Dialer dialer(server);
  const auto begin = rlock::BootClock::now();
  dialer.start(begin, begin + limit);
  std::vector<pollfd> fds;
  dialer.wants(fds);
  REQUIRE(fds.size() == 2);  // IPv4 and IPv6
  for (pollfd& fd : fds) REQUIRE(poll(&fd, 1, 30'000) == 1);
  dialer.stop();
  // A fresh one is waited for, one in flight or just done is not.
  const auto now = rlock::BootClock::now();
  dialer.start(now, now + limit);
  CHECK(dialer.due() == now);
  fds.clear();
  dialer.wants(fds);
  for (pollfd& fd : fds) REQUIRE(poll(&fd, 1, 30'000) == 1);
  dialer.stop();
  const auto later = now + std::chrono::hours(1);
  dialer.start(later, later + limit);
  CHECK(dialer.due() == later + limit / 2);
}

TEST_CASE("a look-up may be abandoned") {
  for (int i = 0; i < 20; ++i) CHECK(Resolution::start("127.0.0.1", 1 + i, AF_INET));
}

TEST_CASE("a path too long for a socket has no address") {
  CHECK(unix_address(std::string(107, 'x')));
  CHECK_FALSE(unix_address(std::string(108, 'x')));
}

TEST_CASE("a try that ends before --connect-timeout does not name it as the limit") {
  Server server;
  server.path = "./full." + std::to_string(getpid());
  server.connect_timeout = std::chrono::seconds(10);
  std::string text = "timed out after 10s (--connect-timeout)";
  SUBCASE("it is the limit") {}
  SUBCASE("it is longer") {
    server.is_longest_try = true;
    text = "timed out after 10s (the limit of one try)";
  }
  const auto address = unix_address(server.path);
  REQUIRE(address);
  const auto* raw = reinterpret_cast<const sockaddr*>(&address->storage);
  const rlock::util::Fd listener(socket(AF_UNIX, SOCK_STREAM, 0));
  const rlock::util::Fd first(socket(AF_UNIX, SOCK_STREAM, 0));
  REQUIRE(bind(listener.get(), raw, address->length) == 0);
  REQUIRE(listen(listener.get(), 0) == 0);
  REQUIRE(connect(first.get(), raw, address->length) == 0);  // its backlog is full
  Dialer dialer(server);
  const auto begin = rlock::BootClock::now();
  dialer.start(begin, begin + server.connect_timeout);
  REQUIRE(dialer.advance(begin + server.connect_timeout));
  const auto taken = dialer.take();
  unlink(server.path.c_str());
  REQUIRE_FALSE(taken);
  CHECK(taken.error().text.ends_with(text));
}
