#pragma once

#include <memory>
#include <optional>
#include <string>

#include "redis/link/cluster_link.hpp"
#include "redis/store/redis_store.hpp"

namespace rlock::redis {

// The native format on a cluster: one lock is one slot, only the list of all locks is everywhere.
class ClusterStore final : public RedisStore {
 public:
  ClusterStore(std::unique_ptr<ClusterLink> link, std::string prefix);

  // The first page is empty: it finds the masters, which the cursor then carries.
  lock::InFlight<lock::NamesPage> list_names(const std::string& cursor) override;
  // The next master's names.
  std::string cursor_past_server(const std::string& cursor) const override;

 private:
  ClusterLink& cluster();
  lock::InFlight<lock::NamesPage> list_masters();

  std::optional<Connection> list_connection_;  // to the master whose names are read
};

}  // namespace rlock::redis
