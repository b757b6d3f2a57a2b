#include "redis/net/tls.hpp"

#include <doctest/doctest.h>

#include <csignal>

#include "redis_call.hpp"

using namespace rlock;
using namespace rlock::test;

// Handshakes that no real server makes; tests/cli/tls.bats has the real ones.
namespace {

constexpr Millis kTlsPatience{150};
// The head of a handshake record of 4096 bytes.
constexpr std::string_view kRecordHead{"\x16\x03\x03\x10\x00", 5};

Ended shake_hands(FakeServer::Script script, Millis patience) {
  auto tls = redis::Tls::make({});
  REQUIRE(tls);
  redis::Server server = at_port(0, patience);
  server.tls = *tls;
  return ping(std::move(script), server);
}

}  // namespace

TEST_CASE("a host name that any certificate would fit is refused") {
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
    CHECK(stream.error().cause == Cause::certificate_name);
  }
  redis::TlsOptions rooted;
  rooted.sni = "db1.example.";
  CHECK(redis::Tls::make(rooted));
}

TEST_CASE("a handshake that nobody answers ends at the connect timeout") {
  Ended ended = shake_hands([](auto& peer, int) { peer.await_hang_up(); }, kTlsPatience);
  CHECK(ended.error.kind == ErrorKind::unavailable);
  CHECK(ended.error.retry == Retry::later);
  CHECK(ended.mentions("timed out after 150ms (connected, but no TLS handshake"));
  CHECK(ended.error.cause == Cause::tls);
  CHECK(ended.took >= kTlsPatience);
  CHECK(ended.took < kLimit);
}

TEST_CASE("a trickled handshake does not stretch the connect timeout") {
  // 4096 bytes at 10 ms each would be 40 s.
  auto script = [](auto& peer, int) {
    peer.trickle(std::string(kRecordHead) + std::string(4096, '\2'), Millis(10));
  };
  Ended ended = shake_hands(script, kTlsPatience);
  CHECK(ended.error.kind == ErrorKind::unavailable);
  CHECK(ended.mentions("timed out after 150ms"));
  CHECK(ended.took >= kTlsPatience);
  CHECK(ended.took < kLimit);
}

TEST_CASE("a server that answers without TLS is refused, and the error says why") {
  Ended ended = shake_hands([](auto& peer, int) { peer.send("-ERR unknown command\r\n"); }, kLimit);
  CHECK(ended.error.kind == ErrorKind::config);
  CHECK(ended.error.retry == Retry::never);
  CHECK(ended.mentions("does not speak TLS"));
  CHECK(ended.error.cause == Cause::tls);
}

TEST_CASE("a server that hangs up in the handshake is tried again, and raises no SIGPIPE") {
  // At the default of the signal a write to a closed socket would end this program.
  auto before = std::signal(SIGPIPE, SIG_DFL);
  Ended ended = shake_hands([](auto&, int) {}, kLimit);
  std::signal(SIGPIPE, before);
  CHECK(ended.error.kind == ErrorKind::unavailable);
  CHECK(ended.error.retry == Retry::later);
}

TEST_CASE("hostile handshake bytes end in an error") {
  auto script = [](auto& peer, int) {
    peer.send(std::string(kRecordHead) + std::string(4096, '\2'));
    peer.await_hang_up();
  };
  Ended ended = shake_hands(script, kLimit);
  CHECK(ended.error.kind == ErrorKind::denied);
  CHECK(ended.mentions("TLS: "));
  CHECK(ended.error.cause == Cause::tls);
}
