#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "redis/link/info.hpp"
#include "redis/net/server.hpp"
#include "redis/store/acl.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// A replica that its master knows to be online.
struct ReplicaReport {
  std::string label;                  // `db2:6379`
  std::optional<Millis> clock_ahead;  // before that of the master; none: it did not answer
};

// What a server reports, for `rlock doctor`. Empty fields: it did not report them, or this user may
// not ask.
struct ServerReport {
  Server server;
  std::optional<Error> contact_error;  // then nothing else is known
  std::optional<Nanos> round_trip;     // the median of a few
  std::optional<Millis> clock_ahead;   // of the server before that of this host
  std::optional<std::chrono::system_clock::time_point> certificate_end;  // of the server, with TLS
  InfoFields info;                                                       // the whole of INFO
  std::optional<std::string> fsync;                                      // appendfsync
  std::optional<std::string> save;
  bool keys_denied = false;                   // this user may not use the keys of the prefix
  std::vector<std::string> denied_commands;   // that rlock needs and this user may not run
  std::vector<std::string> missing_commands;  // that rlock needs and the server does not have
  std::optional<Error> blocking_error;        // why a waiter cannot block there
  std::optional<bool> atomic;                 // whether scripts run one after the other
  bool single_database = false;               // SELECT has no effect
  uint64_t replicas_needed = 0;               // --replicas
  std::vector<ReplicaReport> replicas;        // where they are needed
  std::optional<Error> error;                 // why commands failed that exist and are allowed

  std::string info_field(std::string_view field) const;  // empty where INFO lacks it
};

// Examines the server and leaves no key there. Takes at most its connect timeout and a few seconds,
// and as long again for each replica where `replicas` are needed.
ServerReport examine_server(const Server& server, const std::string& prefix,
                            ServerKind kind = ServerKind::single, uint64_t replicas = 0);

}  // namespace rlock::redis
