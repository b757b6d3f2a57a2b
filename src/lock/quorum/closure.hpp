#pragma once

#include "lock/quorum/merge.hpp"

namespace rlock::lock {

// Closes or opens the lock at all servers, at a majority at least. Each is asked first what it has:
// one that was away may have an older closure, or none. Where too few could be closed those that
// were are opened again.
class QuorumClosure final : public Reply<ClosureReply> {
 public:
  QuorumClosure(std::vector<Member>& members, const Quorum& quorum, ClosureCall call);

  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  Answered answered() const override;
  Result<ClosureReply> take() override { return *std::move(result_); }

 private:
  void on_looked(TimePoint now);
  void on_set(TimePoint now);
  bool is_undone() const;
  void on_undone();
  Error too_few(size_t done) const;

  std::vector<Member>& members_;
  const Quorum& quorum_;
  ClosureCall call_;
  std::optional<Broadcast<Snapshot>> looking_;
  std::optional<Broadcast<ClosureReply>> setting_;
  Replies<ClosureReply> set_;  // of that
  std::optional<Broadcast<ClosureReply>> undoing_;
  TimePoint close_at_ = TimePoint::max();
  std::optional<Result<ClosureReply>> result_;
};

}  // namespace rlock::lock
