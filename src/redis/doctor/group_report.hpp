#pragma once

#include <cstdint>
#include <optional>

#include "redis/link/server_target.hpp"
#include "util/result.hpp"

// What servers that are one place together say of themselves, for `rlock doctor`.
namespace rlock::redis {

struct SentinelReport {
  Server server;
  std::optional<Error> error{};      // then it named no master
  bool abstains = false;             // since it knows none of that name
  std::optional<Error> no_quorum{};  // that could agree on a failover, by its word
  std::string master{};              // `host:port`
};

struct GroupReport {
  std::string label;
  std::vector<SentinelReport> sentinels{};
  std::optional<Server> master{};  // by the vote of Sentinels
};
GroupReport examine_group(const SentinelGroup& group);

struct ClusterReport {
  std::string label;
  std::optional<Error> error{};  // no seed answers as a cluster's node: nothing is known
  std::string state{};           // cluster_state
  uint64_t slots_served = 0;     // of kSlots, by nodes that are not failing
  std::vector<Server> masters{};
};
inline constexpr uint64_t kSlots = 16384;
ClusterReport examine_cluster(const ClusterSeeds& cluster);

}  // namespace rlock::redis
