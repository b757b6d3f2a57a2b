#pragma once

#include <cstdint>
#include <optional>

#include "redis/net/server.hpp"
#include "util/result.hpp"

// What the servers of a Sentinel group or a cluster report, for `rlock doctor`.
namespace rlock::redis {

struct SentinelReport {
  Server server;
  std::optional<Error> error{};      // why it named no master
  bool abstains = false;             // it does not know the master's name
  std::optional<Error> no_quorum{};  // why the sentinels cannot agree on a failover
  std::string master{};              // `host:port`
};

struct GroupReport {
  std::string label;
  std::vector<SentinelReport> sentinels{};
  std::optional<Server> master{};  // that the sentinels elect
};
GroupReport examine_group(const SentinelGroup& group);

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
