#pragma once

#include "lock/quorum/attempt.hpp"

namespace rlock::lock {

// The servers that have extended the lease, or put it back.
size_t count_renewed(const Replies<RenewReply>& replies);

// A try for native locks: with a majority's grants writes the greatest token back to these servers
// under the owner check, and the lock is held when a majority has confirmed that and some of the
// lease is left; else cancels what it took. The others are left for later, unless they are needed.
class QuorumAcquire : public QuorumTry {
 public:
  using QuorumTry::QuorumTry;

  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;

 protected:
  // Once granted: the other servers are left out or still to reply.
  std::unique_ptr<Broadcast<RenewReply>> take_confirmations() {
    asking_.reset();
    return std::move(confirming_);
  }

 private:
  void on_granted(const Summary& totals, TimePoint now) override;
  void on_not_granted(const Summary& totals, TimePoint now) override;
  void advance_try(TimePoint now) override;
  void cancel_try(Result<AcquireReply> then, TimePoint now, TimePoint pause_until);
  std::vector<bool> majority_that_granted() const;
  bool needs_rest(TimePoint now) const;
  bool is_over() const;
  std::vector<bool> servers_to_cancel() const;
  CancelCall cancel_call() const;
  template <class T>
  bool holds() const {
    return result_ && *result_ && std::holds_alternative<T>(**result_);
  }
  AcquireReply try_again(const Summary& totals, Millis pause) const;

  std::unique_ptr<Broadcast<RenewReply>> confirming_;  // first by those who granted the lock
  TimePoint ask_rest_at_ = TimePoint::max();
  Token token_{};
};

}  // namespace rlock::lock
