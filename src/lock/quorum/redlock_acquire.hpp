#pragma once

#include "lock/quorum/attempt.hpp"

namespace rlock::lock {

// A try of Redlock: the lock is held where a majority has granted it and some of the lease is left;
// else every server is told to give it back.
class RedlockAcquire final : public QuorumTry {
 public:
  using QuorumTry::QuorumTry;

 private:
  void granted(const Summary& totals, TimePoint now) override;
  void not_granted(const Summary& totals, TimePoint now) override;
  void try_again(const Summary& totals, TimePoint now);
  void cancel_try(Result<AcquireReply> then, TimePoint now, TimePoint pause_until);
};

}  // namespace rlock::lock
