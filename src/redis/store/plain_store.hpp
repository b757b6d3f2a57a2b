#pragma once

#include "redis/store/external_store.hpp"

namespace rlock::redis {

// The format of redsync, redis-py, node-redlock, redlock-rb and bsm/redislock: `SET NAME owner NX
// PX ttl`, with owner-checked renewal and release. A waiter looks again after a while, with jitter.
class PlainStore final : public ExternalStore {
 public:
  explicit PlainStore(std::unique_ptr<Link> link);
  // Sends nothing: sleeps for `slice`.
  lock::InFlight<lock::Wake> wait_for_wake(const lock::LockName& name, const lock::Owner& owner,
                                           Millis slice) override;

 private:
  Millis retry_after() override;

  util::SystemRandom random_;
};

}  // namespace rlock::redis
