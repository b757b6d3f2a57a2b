#pragma once

#include <string>
#include <vector>

#include "lock/poller.hpp"
#include "lua/scripts.hpp"
#include "redis/link/connection.hpp"

namespace rlock::redis {

using Words = std::vector<std::string>;

// One server, asked one thing after another: what the doctor wants to know.
class CommandClient {
 public:
  explicit CommandClient(const Server& server) : connection_(server) {}

  // The words of the reply, however nested. Bounded by the connect timeout and a few seconds.
  Result<Words> ask(const Words& words, const lua::Script* script = nullptr);

 private:
  Connection connection_;
  lock::SystemPoller poller_;
};

}  // namespace rlock::redis
