#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lock/poller.hpp"
#include "lua/scripts.hpp"
#include "redis/link/connection.hpp"

namespace rlock::redis {

using Words = std::vector<std::string>;

// Sends single commands to one server.
class CommandClient {
 public:
  explicit CommandClient(const Server& server) : connection_(server) {}

  // The strings and numbers of the reply, however nested. Takes at most the connect timeout and a
  // few seconds.
  Result<Words> ask(const Words& words, const lua::Script* script = nullptr);

  // As Connection has it: after a reply.
  std::optional<std::chrono::system_clock::time_point> certificate_end() const {
    return connection_.certificate_end();
  }

 private:
  Connection connection_;
  lock::SystemPoller poller_;
};

}  // namespace rlock::redis
