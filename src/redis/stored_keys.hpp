#pragma once

#include <string>
#include <vector>

#include "lock/types.hpp"
#include "redis/net/url.hpp"
#include "redis/open.hpp"

namespace rlock::redis {

// A key on the server, for a message.
struct StoredKey {
  std::string name{};
  std::string type{};  // the answer to TYPE: `hash`
  Millis left{0};      // negative: it has no expiry
};

// Keys that prevent every run from acquiring a lock and that no rlock wrote, and the server that
// has them.
struct BlockingKeys {
  std::vector<StoredKey> keys{};
  Server server{};
};

// In the native format: keys of the lock that have another type. In the other formats: the key
// itself if it has another type or no expiry. Only reads, over its own connection. Returns none
// over several servers, Sentinel or a cluster, and if the server does not answer.
BlockingKeys blocking_keys(const OpenOptions& options, const lock::LockName& name);

}  // namespace rlock::redis
