#pragma once

#include <cstdint>
#include <optional>

#include "redis/place.hpp"
#include "util/result.hpp"

// What servers that are one place together say of themselves, for `rlock doctor`.
namespace rlock::redis {

struct SentinelSurvey {
  Server server;
  std::optional<util::Error> trouble{};    // then it named no master
  bool abstains = false;                   // since it knows none of that name
  std::optional<util::Error> no_quorum{};  // that could agree on a failover, by its word
  std::string master{};                    // `host:port`
};

struct GroupSurvey {
  std::string label;
  std::vector<SentinelSurvey> sentinels{};
  std::optional<Server> master{};  // by the vote of Sentinels
};
GroupSurvey survey_group(const SentinelGroup& group);

struct ClusterSurvey {
  std::string label;
  std::optional<util::Error> trouble{};  // no seed answers as a cluster's node: nothing is known
  std::string state{};                   // cluster_state
  uint64_t slots_served = 0;             // of kSlots, by nodes that are not failing
  std::vector<Server> masters{};
};
inline constexpr uint64_t kSlots = 16384;
ClusterSurvey survey_cluster(const ClusterSeeds& cluster);

}  // namespace rlock::redis
