#pragma once

#include <optional>

#include "redis/link/connection.hpp"
#include "redis/store/external_store.hpp"

namespace rlock::redis {

// Redisson's RLock: a hash owner -> entries, and a message on the lock's channel when it becomes
// free. The owner is written as `<32 hex digits>:1`, as Redisson writes `<uuid>:<thread>`.
class RedissonStore final : public ExternalStore {
 public:
  explicit RedissonStore(Server server);
  // The first call subscribes over a connection of its own, and ends when that is confirmed: the
  // caller then looks at the lock, and misses no later message.
  lock::InFlight<lock::Wake> wait_for_wake(const lock::LockName& name, const lock::Owner& owner,
                                           Millis slice) override;

 private:
  Millis retry_after() override { return Millis(0); }
  std::string encode_owner(const lock::Owner& owner) const override;
  std::string decode_owner(std::string owner) const override;

  Connection channel_;
};

}  // namespace rlock::redis
