#pragma once

#include <string>
#include <variant>
#include <vector>

#include "redis/net/server.hpp"

// What a URL names.
namespace rlock::redis {

struct SentinelGroup {
  std::vector<Server> sentinels;
  std::string name;  // of the master
  Server master;     // all but where it is
};

struct ClusterSeeds {
  std::vector<Server> seeds;
};

using ServerTarget = std::variant<Server, SentinelGroup, ClusterSeeds>;

}  // namespace rlock::redis
