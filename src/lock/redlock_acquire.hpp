#pragma once

#include "lock/quorum_acquire.hpp"

namespace rlock::lock {

// One try of Redlock: asks all servers, and the lock is held where a majority has granted it and
// some of the lease is left; else every server is told to give it back. [PROTOCOL, Quorum]
class RedlockAcquire final : public Reply<AcquireReply> {
 public:
  // `one.call` has the owner of this try alone.
  RedlockAcquire(std::vector<Member>& members, const Electorate& electorate, util::Random& random,
                 QuorumAcquire::Try one);

  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  util::Answered answered() const override { return answered_; }
  util::Result<AcquireReply> take() override;

 private:
  void hear(TimePoint now);
  void not_granted(const Tally& heard, TimePoint now);
  void try_again(const Tally& heard, TimePoint now);
  void give_back(util::Result<AcquireReply> then, TimePoint now);
  bool waits() const { return try_.call.queueing == Queueing::wait; }

  std::vector<Member>& members_;
  const Electorate& electorate_;
  util::Random& random_;
  QuorumAcquire::Try try_;
  Millis limit_;
  std::optional<TimePoint> started_;
  TimePoint close_at_ = TimePoint::max();  // nobody is waited for any longer
  TimePoint pause_until_ = TimePoint::min();
  std::optional<Broadcast<AcquireReply>> asking_;
  std::optional<Broadcast<CancelReply>> giving_back_;
  bool split_ = false;
  util::Answered answered_ = util::Answered::no;
  std::optional<util::Result<AcquireReply>> result_;
};

}  // namespace rlock::lock
