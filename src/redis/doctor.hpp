#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "redis/link/reply.hpp"
#include "redis/net/url.hpp"
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

// What one sentinel reports.
struct SentinelReport {
  Server server;
  std::optional<Error> error{};      // why it named no master
  std::optional<Error> no_quorum{};  // why the sentinels cannot agree on a failover
  std::string master{};              // `host:port`
};

// What the servers of a Sentinel group report.
struct GroupReport {
  std::string label;
  std::vector<SentinelReport> sentinels{};
  std::optional<Server> master{};  // that the sentinels elect
};
GroupReport examine_group(const SentinelGroup& group);

// What the servers of a cluster report.
struct ClusterReport {
  std::string label;
  std::optional<Error> error{};  // no seed answers as a node of a cluster: nothing is known
  std::string state{};           // cluster_state
  uint64_t slots_served = 0;     // of kSlots, by nodes that are not failing
  std::vector<Server> masters{};
};
inline constexpr uint64_t kSlots = 16384;
ClusterReport examine_cluster(const ClusterSeeds& cluster);

}  // namespace rlock::redis
