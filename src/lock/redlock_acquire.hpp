#pragma once

#include "lock/quorum_try.hpp"

namespace rlock::lock {

// A try of Redlock: the lock is held where a majority has granted it and some of the lease is left;
// else every server is told to give it back. [PROTOCOL, Quorum]
class RedlockAcquire final : public QuorumTry {
 public:
  using QuorumTry::QuorumTry;

 private:
  void granted(const Tally& heard, TimePoint now) override;
  void not_granted(const Tally& heard, TimePoint now) override;
  void try_again(const Tally& heard, TimePoint now);
  void give_back(util::Result<AcquireReply> then, TimePoint now, TimePoint pause_until);
};

}  // namespace rlock::lock
