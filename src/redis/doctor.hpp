#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/link/cluster.hpp"
#include "redis/link/reply.hpp"
#include "redis/link/sentinel.hpp"
#include "redis/net/url.hpp"
#include "redis/store/acl.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// Why commands failed, by their names as in `CONFIG GET`. What their replies would have reported is
// not known.
using Failures = std::map<std::string, Error, std::less<>>;

// A replica that its master considers online.
struct ReplicaReport {
  std::string label;  // `db2:6379`
  // Ahead of the master's clock; nullopt if the replica did not answer.
  std::optional<Millis> clock_ahead;
};

// What rlock needs a server for.
struct ServerUse {
  std::string prefix = "rlock:";
  ServerKind kind = ServerKind::single;
  uint64_t replicas = 0;  // --replicas
};

// What a server reports, for `rlock doctor`. A field is empty if the server did not report it, or
// if `failures` says why rlock did not ask.
struct ServerReport {
  Server server;
  ServerUse use;
  std::optional<Error> contact_error;  // if set, nothing else is known
  Failures failures;
  std::optional<Nanos> round_trip;    // the median of several
  std::optional<Millis> clock_ahead;  // of the server, ahead of this host's clock
  std::optional<std::chrono::system_clock::time_point> certificate_end;  // of the server, with TLS
  InfoFields info;                                                       // the whole of INFO
  std::optional<std::string> fsync;                                      // appendfsync
  std::optional<std::string> save;
  bool keys_denied = false;                   // this user may not use keys with the prefix
  std::vector<std::string> denied_commands;   // that rlock needs and this user may not run
  std::vector<std::string> missing_commands;  // that rlock needs and the server does not have
  std::optional<Error> blocking_error;        // why waiters cannot block there
  std::optional<bool> atomic;                 // whether scripts run one after the other
  std::optional<Error> atomic_error;          // why that is unknown
  uint64_t flushes = 0;                   // calls of FLUSHDB and FLUSHALL since the server started
  std::string other_key{};                // a key in the database that no rlock wrote
  bool single_database = false;           // SELECT has no effect
  std::optional<Error> databases_error;   // why that is unknown
  std::optional<Error> membership_error;  // Cause::not_counted, or why it is unknown if it counts
  std::vector<std::string> moving_slots;  // of a cluster's node: `93 to another node`
  std::vector<ReplicaReport> replicas;    // if --replicas needs them
  // How many of them confirmed a write in time, up to --replicas.
  std::optional<uint64_t> confirmed;
  std::optional<Error> error;  // why commands failed although they exist and are allowed

  std::string info_field(std::string_view field) const;  // empty if INFO lacks the field
};

// Examines the server and leaves no key there. Takes at most its connect timeout and a few seconds,
// and as long again for each replica if --replicas needs them.
ServerReport examine_server(const Server& server, const ServerUse& use);

// What one sentinel reports.
struct SentinelReport {
  Server server;
  std::optional<Error> error{};  // why it named no master
  Failures failures{};
  std::string master{};                // `host:port`
  SentinelView view{};                 // of the other sentinels
  std::optional<Millis> down_after{};  // how long a master must be silent before it is replaced
};

// What the servers of a Sentinel group report.
struct GroupReport {
  std::string label;
  std::string name;  // of the master
  // The sentinels that the URL names, then the announced ones.
  std::vector<SentinelReport> sentinels{};
  size_t named = 0;
  size_t existing = 0;
  std::optional<Server> master{};  // the server that the sentinels elect
};
GroupReport examine_group(const SentinelGroup& group);

// What the servers of a cluster report.
struct ClusterReport {
  std::string label;
  size_t seeds = 0;
  std::vector<Error> seed_errors{};  // why seeds do not answer as nodes of a cluster
  std::string state{};               // cluster_state; empty if no seed answers
  uint64_t slots_served = 0;         // of kSlots, by nodes that are not failing
  std::vector<Server> masters{};
  std::optional<Millis> node_timeout{};  // cluster-node-timeout
  Failures failures{};                   // of the first seed that answers

  bool is_silent() const { return seed_errors.size() == seeds; }
};
ClusterReport examine_cluster(const ClusterSeeds& cluster);

}  // namespace rlock::redis
