#pragma once

#include <memory>
#include <optional>
#include <string>

#include "redis/link/cluster_link.hpp"
#include "redis/store/redis_store.hpp"

namespace rlock::redis {

// The native format in a cluster. The keys of a lock lie in one slot; only the list of all locks
// needs all masters.
class ClusterStore final : public RedisStore {
 public:
  ClusterStore(std::unique_ptr<ClusterLink> link, std::string prefix);

  // The first page is empty: it finds the masters, which the cursor then contains.
  lock::InFlight<lock::NamesPage> list_names(const std::string& cursor) override;
  // Leads to the names of the next master.
  std::string cursor_past_server(const std::string& cursor) const override;

 private:
  ClusterLink& cluster();
  lock::InFlight<lock::NamesPage> list_masters();

  std::optional<Connection> list_connection_;  // to the master whose names are read
};

}  // namespace rlock::redis
