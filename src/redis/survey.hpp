#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "redis/acl.hpp"
#include "redis/server.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// What a server says of itself, for `rlock doctor`. Nothing: it did not say, or not to this user.
struct Survey {
  Server server;
  std::optional<util::Error> no_contact;                 // then nothing else is known
  std::optional<util::Nanos> round_trip;                 // the median of a few
  std::optional<util::Millis> clock_ahead;               // the server's clock before this host's
  std::map<std::string, std::string, std::less<>> info;  // INFO, by its own names
  std::optional<std::string> fsync;                      // appendfsync
  std::optional<std::string> save;
  std::vector<std::string> denied;     // commands that rlock needs, and this user may not run
  std::vector<std::string> lacking;    // and the server does not have
  std::optional<util::Error> no_wait;  // why a waiter cannot block there
  std::optional<bool> atomic;          // scripts run one after the other
  bool one_database = false;           // SELECT changes nothing
  std::optional<util::Error> trouble;  // why the commands that are allowed failed all the same

  std::string about(std::string_view field) const;  // of `info`; empty where it is not there
};

// Asks, and leaves nothing at the server. Bounded by the server's connect timeout and a few
// seconds.
Survey survey(const Server& server, const std::string& prefix, Standing standing = Standing::alone);

}  // namespace rlock::redis
