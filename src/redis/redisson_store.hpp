#pragma once

#include <optional>

#include "redis/connection.hpp"
#include "redis/foreign_store.hpp"

namespace rlock::redis {

// Redisson's RLock: a hash owner -> entries, and a message on the lock's channel when it becomes
// free. The owner is written as `<32 hex digits>:1`, as Redisson writes `<uuid>:<thread>`.
class RedissonStore final : public ForeignStore {
 public:
  explicit RedissonStore(Server server);
  // The first one subscribes, and is done when that is confirmed: what was said before is to be
  // looked for, nothing said later is missed. Over a connection of its own. (L29)
  lock::InFlight<lock::Wake> wait_for_wake(const lock::LockName& name, const lock::Owner& owner,
                                           lock::Millis slice) override;

 private:
  lock::Millis retry_after() override { return lock::Millis(0); }
  std::string stored(const lock::Owner& owner) const override;
  std::string shown(std::string owner) const override;

  Connection channel_;
};

}  // namespace rlock::redis
