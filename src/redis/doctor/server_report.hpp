#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "redis/net/server.hpp"
#include "redis/store/acl.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// What a server says of itself, for `rlock doctor`. Nothing: it did not say, or not to this user.
struct ServerReport {
  Server server;
  std::optional<Error> contact_error;                    // then nothing else is known
  std::optional<Nanos> round_trip;                       // the median of a few
  std::optional<Millis> clock_ahead;                     // the server's clock before this host's
  std::map<std::string, std::string, std::less<>> info;  // INFO, by its own names
  std::optional<std::string> fsync;                      // appendfsync
  std::optional<std::string> save;
  std::vector<std::string> denied;      // commands that rlock needs, and this user may not run
  std::vector<std::string> missing;     // and the server does not have
  std::optional<Error> blocking_error;  // why a waiter cannot block there
  std::optional<bool> atomic;           // scripts run one after the other
  bool single_database = false;         // SELECT changes nothing
  std::optional<Error> error;           // why the commands that are allowed failed all the same

  std::string info_field(std::string_view field) const;  // of `info`; empty where it is not there
};

// Asks, and leaves nothing at the server. Bounded by the server's connect timeout and a few
// seconds.
ServerReport examine_server(const Server& server, const std::string& prefix,
                            ServerKind kind = ServerKind::single);

}  // namespace rlock::redis
