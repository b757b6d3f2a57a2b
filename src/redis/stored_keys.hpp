#pragma once

#include <string>
#include <vector>

#include "lock/types.hpp"
#include "redis/net/url.hpp"
#include "redis/open.hpp"

namespace rlock::redis {

// A key of the server, for a message.
struct StoredKey {
  std::string name{};
  std::string type{};  // as TYPE has it: `hash`
  Millis left{0};      // negative: it has no expiry
};

// Keys that keep everybody from a lock and that no rlock wrote, and the server that has them.
struct BlockingKeys {
  std::vector<StoredKey> keys{};
  Server server{};
};

// Of the native format, those of another type; of the other formats, the key itself if it has
// another type or no expiry. Reads only, over a connection of its own. None over several servers,
// Sentinel or a cluster, and none if the server does not say.
BlockingKeys blocking_keys(const OpenOptions& options, const lock::LockName& name);

}  // namespace rlock::redis
