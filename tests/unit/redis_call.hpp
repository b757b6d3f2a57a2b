#pragma once

#include <doctest/doctest.h>
#include <poll.h>

#include <algorithm>
#include <string>
#include <vector>

#include "redis/link/connection.hpp"
#include "support/fake_server.hpp"
#include "support/redis_server.hpp"

namespace rlock::test {

// Drives what was started to its end; ErrorKind::busy when it is still in flight after `limit`.
template <class Request>
auto finish(Request& request, Millis limit = Millis(10'000)) -> decltype(request.take()) {
  auto until = BootClock::now() + limit;
  while (!request.advance(BootClock::now())) {
    if (BootClock::now() >= until) return Error{ErrorKind::busy, "in flight"};
    std::vector<pollfd> fds;
    request.wants(fds);
    poll(fds.data(), fds.size(), poll_timeout(BootClock::now(), std::min(until, request.due())));
  }
  return request.take();
}

inline Result<redis::ReplyPtr> call(redis::Link& link, const std::vector<std::string>& words,
                                    Millis limit = Millis(10'000)) {
  link.start(words);
  return finish(link, limit);
}

// The reply as text: a status or string as it is, a number in decimal; an Error's text after "! ".
inline std::string reply_text(const Result<redis::ReplyPtr>& reply) {
  if (!reply) return "! " + reply.error().text;
  if ((*reply)->type == REDIS_REPLY_INTEGER) return std::to_string((*reply)->integer);
  if ((*reply)->str == nullptr) return "";
  return {(*reply)->str, static_cast<size_t>((*reply)->len)};
}

inline redis::Server at_port(int port, Millis connect_timeout = Millis(5'000)) {
  redis::Server server;
  server.host = "127.0.0.1";
  server.port = port;
  server.connect_timeout = connect_timeout;
  return server;
}

// Far above what a loaded machine adds, far below what a stretched deadline would take.
inline constexpr Millis kLimit{5'000};

struct Ended {
  Error error;
  Millis took;

  bool mentions(std::string_view part) const { return error.text.find(part) != std::string::npos; }
};

// One PING to a server of this script; every outcome must be an Error.
inline Ended ping(FakeServer::Script script, redis::Server server) {
  FakeServer fake(std::move(script));
  server.port = fake.port();
  redis::Connection connection(server);
  auto before = BootClock::now();
  auto reply = call(connection, {"PING"}, kLimit * 2);
  auto took = std::chrono::duration_cast<Millis>(BootClock::now() - before);
  REQUIRE_FALSE(reply);
  return {reply.error(), took};
}

inline redis::Server at_socket(const RedisServer& real) {
  redis::Server server;
  server.path = real.socket_path();
  server.connect_timeout = Millis(5'000);
  return server;
}

}  // namespace rlock::test
