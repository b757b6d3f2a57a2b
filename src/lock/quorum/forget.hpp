#pragma once

#include "lock/quorum/merge.hpp"

namespace rlock::lock {

// Removes what was marked as done at all servers, by a majority at least. They agree first on what
// that is: up to the token of the last run that has ended, and not up to a time of their own, which
// would make the mark of a later run void where the clock of one of them is ahead.
class QuorumForget final : public Reply<Forgotten> {
 public:
  QuorumForget(std::vector<Member>& members, const Quorum& quorum, ForgetCall call);

  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  Answered answered() const override;
  Result<Forgotten> take() override { return *std::move(result_); }

 private:
  void advance_look(TimePoint now);

  std::vector<Member>& members_;
  const Quorum& quorum_;
  ForgetCall call_;
  std::optional<Broadcast<Snapshot>> looking_;
  std::optional<Broadcast<Forgotten>> forgetting_;
  TimePoint close_at_ = TimePoint::max();
  std::optional<Result<Forgotten>> result_;
};

}  // namespace rlock::lock
