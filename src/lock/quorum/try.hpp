#pragma once

#include <cstdint>

#include "lock/quorum/merge.hpp"
#include "util/random.hpp"

namespace rlock::lock {

// After a split vote a request that does not wait tries this often: each time one of the contenders
// is likely to get a majority.
inline constexpr uint64_t kMaxTies = 6;

// The replies of the servers to one acquire, counted.
struct Summary {
  size_t granted = 0;
  size_t queued = 0;
  size_t busy = 0;
  size_t refused = 0;  // the owner has ended there
  Token greatest{};
  uint64_t position = 1;
  uint64_t waiters = 0;
  std::optional<Millis> look_again{};
  std::optional<Millis> slice{};            // the shortest: each server expects its own heartbeats
  std::optional<Ticket> ticket{};           // the greatest under which it waits
  std::optional<OwnerEnded> owner_ended{};  // removed or forced by an operator
  // Of a server that takes no more: the latest success; how often runs have failed since, at most.
  // Neither if it was forgotten, up to the token `forgotten`.
  std::optional<AlreadyDone> done{};
  FailedTooOften failures{};
  Token forgotten{};
  // The obstacle at the most servers, and at how many.
  std::optional<Obstacle> contender{};
  uint64_t contender_servers = 0;

  size_t answered() const { return granted + queued + busy + refused; }
};
Summary summarize(const Replies<AcquireReply>& replies);

// How far a try has come. After `asking` it may be in any of the others, and it never returns.
enum class Step {
  asking,      // for the lock, at all servers
  confirming,  // a majority has granted it, and confirms the token that it shall have
  cancelling,  // what it took: the result is another
  over,
};

// One try to get the lock at a majority of the servers: asks all of them. What follows once they
// have granted it, or cannot any more, is up to the kind of try.
class QuorumTry : public Reply<AcquireReply> {
 public:
  // The servers to which a token has still to be written back, or that have to confirm it.
  using Confirmations = std::unique_ptr<Broadcast<RenewReply>>;

  struct Params {
    AcquireCall call;  // with ticket, attempt and owner of this try
    // Split votes in a row: before this try, and with it once its result is taken. The next try
    // comes a little later each time.
    uint64_t& ties;
    // What servers said in earlier tries to be forgotten, for those that do not know it.
    Token* forgotten = nullptr;
    // Takes over what a grant did not wait for.
    std::function<void(Confirmations)> on_held{};
  };

  QuorumTry(std::vector<Member>& members, const Quorum& quorum, util::Random& random, Params one);

  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  Answered answered() const override { return answered_; }
  Result<AcquireReply> take() override;

 protected:
  // Each of these ends the step: by confirm_by(), begin_cancelling() or conclude().
  virtual void on_granted(const Summary& totals, TimePoint now) = 0;
  virtual void on_not_granted(const Summary& totals, TimePoint now) = 0;
  // Of Step::confirming.
  virtual void confirm(TimePoint) {}

  bool waits() const { return params_.call.queueing == Queueing::wait; }
  Error too_few_answered() const;
  Millis pause_after_tie();
  // The servers `first` are asked to confirm what they granted, the others at `rest_at` at the
  // earliest.
  void confirm_by(const std::vector<bool>& first, RequestMaker<RenewReply> make_request,
                  TimePoint rest_at);
  // The try is over with result_ once the servers have cancelled it, at `until` at the latest, but
  // not before `pause_until`.
  void begin_cancelling(RequestMaker<CancelReply> make_request, TimePoint until,
                        TimePoint pause_until);
  void conclude(AcquireReply reply);

  std::vector<Member>& members_;
  const Quorum& quorum_;
  util::Random& random_;
  Params params_;
  std::optional<TimePoint> started_;
  // While `confirming`, too, if another server may still say that the work is done.
  std::optional<Broadcast<AcquireReply>> asking_;
  Confirmations confirming_;
  TimePoint ask_rest_at_ = TimePoint::max();
  std::optional<Result<AcquireReply>> result_;

 private:
  void ask(TimePoint now);
  AcquireCall call_at(TimePoint now) const;

  Millis limit_;
  Step step_ = Step::asking;
  TimePoint stragglers_until_ = TimePoint::max();  // where a majority has answered
  std::optional<Broadcast<CancelReply>> cancelling_;
  TimePoint cancel_until_ = TimePoint::max();
  TimePoint pause_until_ = TimePoint::min();
  bool tied_ = false;
  Answered answered_ = Answered::no;
};

// A try for native locks: with a majority's grants writes the greatest token back to these servers
// under the owner check, and the lock is held when a majority has confirmed that and some of the
// lease is left; else cancels what it took. The others are left for later, unless they are needed.
class QuorumAcquire final : public QuorumTry {
 public:
  using QuorumTry::QuorumTry;

 private:
  void on_granted(const Summary& totals, TimePoint now) override;
  void on_not_granted(const Summary& totals, TimePoint now) override;
  void confirm(TimePoint now) override;
  void split_vote(const Summary& totals, TimePoint now);
  void cancel_try(Result<AcquireReply> then, TimePoint now, Millis pause = Millis(0));
  std::vector<bool> majority_that_granted() const;
  bool needs_rest(TimePoint now) const;
  bool is_over() const;
  std::vector<bool> servers_to_cancel() const;
  CancelCall cancel_call() const;
  template <class T>
  bool holds() const {
    return result_ && *result_ && std::holds_alternative<T>(**result_);
  }

  Token token_{};
};

}  // namespace rlock::lock
