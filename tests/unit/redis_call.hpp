#pragma once

#include <poll.h>

#include <algorithm>
#include <string>
#include <vector>

#include "redis/connection.hpp"
#include "support/redis_server.hpp"

namespace rlock::test {

// Drives what was started to its end; ErrorKind::busy when it is still in flight after `limit`.
template <class Asked>
auto finish(Asked& asked, util::Millis limit = util::Millis(10'000)) -> decltype(asked.take()) {
  auto until = util::BootClock::now() + limit;
  while (!asked.advance(util::BootClock::now())) {
    if (util::BootClock::now() >= until) return util::Error{util::ErrorKind::busy, "in flight"};
    std::vector<pollfd> fds;
    asked.wants(fds);
    poll(fds.data(), fds.size(),
         util::poll_timeout(util::BootClock::now(), std::min(until, asked.due())));
  }
  return asked.take();
}

inline util::Result<redis::ReplyPtr> call(redis::Link& link, const std::vector<std::string>& words,
                                          util::Millis limit = util::Millis(10'000)) {
  link.start(words);
  return finish(link, limit);
}

// The reply as text: a status or string as it is, a number in decimal; an Error's text after "! ".
inline std::string said(const util::Result<redis::ReplyPtr>& reply) {
  if (!reply) return "! " + reply.error().text;
  if ((*reply)->type == REDIS_REPLY_INTEGER) return std::to_string((*reply)->integer);
  if ((*reply)->str == nullptr) return "";
  return {(*reply)->str, static_cast<size_t>((*reply)->len)};
}

inline redis::Server at_port(int port, util::Millis connect_timeout = util::Millis(5'000)) {
  redis::Server server;
  server.host = "127.0.0.1";
  server.port = port;
  server.connect_timeout = connect_timeout;
  return server;
}

inline redis::Server at_socket(const RedisServer& real) {
  redis::Server server;
  server.transport = redis::Transport::unix_socket;
  server.path = real.socket_path();
  server.connect_timeout = util::Millis(5'000);
  return server;
}

}  // namespace rlock::test
