#include "redis/net/tls.hpp"

#include <doctest/doctest.h>

#include <csignal>

#include "redis_call.hpp"
#include "support/fake_server.hpp"

using namespace rlock;
using redis::Connection;
using test::at_port;
using test::call;
using test::FakeServer;

// Handshakes that no real server makes; tests/cli/tls.bats has the real ones.
namespace {

constexpr Millis kHandshakePatience{150};
// Far above what a loaded machine adds, far below what a stretched deadline would take.
constexpr Millis kHandshakeLimit{5'000};
// The head of a handshake record of 4096 bytes.
constexpr std::string_view kRecordHead{"\x16\x03\x03\x10\x00", 5};

struct EndedHandshake {
  Error error;
  Millis took;
};

EndedHandshake shake_hands(FakeServer::Script script, Millis patience) {
  auto tls = redis::Tls::make({});
  REQUIRE(tls);
  FakeServer fake(std::move(script));
  redis::Server server = at_port(fake.port(), patience);
  server.tls = *tls;
  Connection connection(server);
  auto before = BootClock::now();
  auto reply = call(connection, {"PING"}, kHandshakeLimit * 2);
  auto took = std::chrono::duration_cast<Millis>(BootClock::now() - before);
  REQUIRE_FALSE(reply);
  return {reply.error(), took};
}

bool mentions(const Error& error, std::string_view part) {
  return error.text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a name that any certificate would fit is no name of a host") {
  for (const char* name : {".", "..", ".example.com", ".example.com."}) {
    CAPTURE(name);
    redis::TlsOptions options;
    options.sni = name;
    auto refused = redis::Tls::make(options);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::config);
    // As a node of a cluster may have it in a redirection.
    auto tls = redis::Tls::make({});
    REQUIRE(tls);
    auto stream = (*tls)->wrap(util::Fd(), name);
    REQUIRE_FALSE(stream);
    CHECK(stream.error().kind == ErrorKind::denied);
  }
  redis::TlsOptions rooted;
  rooted.sni = "db1.example.";
  CHECK(redis::Tls::make(rooted));
}

TEST_CASE("a handshake that nobody answers ends at the connect timeout") {
  EndedHandshake ended =
      shake_hands([](auto& peer, int) { peer.await_hang_up(); }, kHandshakePatience);
  CHECK(ended.error.kind == ErrorKind::unavailable);
  CHECK(ended.error.retry == Retry::later);
  CHECK(mentions(ended.error, "timed out after 150ms (connected, but no TLS handshake"));
  CHECK(ended.took >= kHandshakePatience);
  CHECK(ended.took < kHandshakeLimit);
}

TEST_CASE("a trickled handshake does not stretch the connect timeout") {
  // 4096 bytes at 10 ms each would be 40 s.
  auto script = [](auto& peer, int) {
    peer.trickle(std::string(kRecordHead) + std::string(4096, '\2'), Millis(10));
  };
  EndedHandshake ended = shake_hands(script, kHandshakePatience);
  CHECK(ended.error.kind == ErrorKind::unavailable);
  CHECK(mentions(ended.error, "timed out after 150ms"));
  CHECK(ended.took >= kHandshakePatience);
  CHECK(ended.took < kHandshakeLimit);
}

TEST_CASE("a server that answers without TLS is refused, and the error says why") {
  EndedHandshake ended =
      shake_hands([](auto& peer, int) { peer.send("-ERR unknown command\r\n"); }, kHandshakeLimit);
  CHECK(ended.error.kind == ErrorKind::denied);
  CHECK(ended.error.retry == Retry::never);
  CHECK(mentions(ended.error, "does not speak TLS"));
}

TEST_CASE("a server that hangs up in the handshake is tried again, and raises no SIGPIPE") {
  // At the default of the signal a write to a closed socket would end this program.
  auto before = std::signal(SIGPIPE, SIG_DFL);
  EndedHandshake ended = shake_hands([](auto&, int) {}, kHandshakeLimit);
  std::signal(SIGPIPE, before);
  CHECK(ended.error.kind == ErrorKind::unavailable);
  CHECK(ended.error.retry == Retry::later);
}

TEST_CASE("hostile handshake bytes end in an error") {
  auto script = [](auto& peer, int) {
    peer.send(std::string(kRecordHead) + std::string(4096, '\2'));
    peer.await_hang_up();
  };
  EndedHandshake ended = shake_hands(script, kHandshakeLimit);
  CHECK(ended.error.kind == ErrorKind::denied);
  CHECK(mentions(ended.error, "TLS: "));
}
