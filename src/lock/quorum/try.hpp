#pragma once

#include <cstdint>

#include "lock/quorum/merge.hpp"
#include "util/random.hpp"

namespace rlock::lock {

// How often a request that does not wait tries again after a split vote. Each time one of the
// contenders is likely to get a majority.
inline constexpr uint64_t kMaxTies = 6;

// Counts the replies of the servers to one acquire.
struct Summary {
  size_t granted = 0;
  size_t queued = 0;
  size_t busy = 0;
  size_t refused = 0;  // servers at which the owner has ended
  Token greatest{};
  uint64_t position = 1;
  uint64_t waiters = 0;
  std::optional<Millis> look_again{};
  std::optional<Millis> slice{};            // the shortest: each server expects its own heartbeats
  std::optional<Ticket> ticket{};           // the greatest under which it waits
  std::optional<OwnerEnded> owner_ended{};  // set if an operator removed or broke the owner
  // From servers that count the work as done or given up: the latest success, and the greatest
  // number of failed runs since. Neither counts if it was forgotten, up to the token `forgotten`.
  std::optional<AlreadyDone> done{};
  FailedTooOften failures{};
  Token forgotten{};
  // The obstacle at the largest number of servers, and that number.
  std::optional<Obstacle> contender{};
  uint64_t contender_servers = 0;
  std::optional<NewerRules> needs{};  // at any server

  size_t answered() const { return granted + queued + busy + refused; }
};
Summary summarize(const Replies<AcquireReply>& replies);

// The state of a try. From `asking` it may change to any other state, and it never returns to
// `asking`.
enum class Step {
  asking,      // asks all servers for the lock
  confirming,  // a majority has granted the lock, and confirms its token
  cancelling,  // cancels what it acquired, because the result is another
  over,
};

// One try to acquire the lock at a majority of the servers: asks all of them. The kind of try
// decides what follows when they have granted it, or cannot grant it any more.
class QuorumTry : public Reply<AcquireReply> {
 public:
  // The servers that a token has still to be written back to, or that have to confirm it.
  using Confirmations = std::unique_ptr<Broadcast<RenewReply>>;

  struct Params {
    AcquireCall call;  // with ticket, attempt and owner of this try
    // Consecutive split votes: those before this try, and this one once its result is taken. The
    // next try follows a little later each time.
    uint64_t& ties;
    // The token up to which servers reported marks as forgotten in earlier tries, for the servers
    // that do not know it.
    Token* forgotten = nullptr;
    // Takes over the requests for which a grant did not wait.
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
  // Called in Step::confirming.
  virtual void confirm(TimePoint) {}

  bool waits() const { return params_.call.queueing == Queueing::wait; }
  Error too_few_answered() const;
  Millis pause_after_tie();
  // Asks the servers `first` to confirm what they granted, and the others at `rest_at` at the
  // earliest.
  void confirm_by(const std::vector<bool>& first, RequestMaker<RenewReply> make_request,
                  TimePoint rest_at);
  // Ends the try with result_ once the servers have cancelled it, at `until` at the latest, but not
  // before `pause_until`.
  void begin_cancelling(RequestMaker<CancelReply> make_request, TimePoint until,
                        TimePoint pause_until);
  void conclude(AcquireReply reply);

  std::vector<Member>& members_;
  const Quorum& quorum_;
  util::Random& random_;
  Params params_;
  std::optional<TimePoint> started_;
  // Still set while `confirming` if another server may report that the work is done.
  std::optional<Broadcast<AcquireReply>> asking_;
  Confirmations confirming_;
  TimePoint ask_rest_at_ = TimePoint::max();
  std::optional<Result<AcquireReply>> result_;

 private:
  void ask(TimePoint now);
  AcquireCall call_at(TimePoint now) const;

  Millis limit_;
  Step step_ = Step::asking;
  TimePoint stragglers_until_ = TimePoint::max();  // set once a majority has answered
  std::optional<Broadcast<CancelReply>> cancelling_;
  TimePoint cancel_until_ = TimePoint::max();
  TimePoint pause_until_ = TimePoint::min();
  bool tied_ = false;
  Answered answered_ = Answered::no;
};

// A try for native locks. When a majority has granted the lock, it writes the greatest token back
// to these servers under the owner check. The lock is held when a majority has confirmed that and
// some of the lease is left; otherwise the try cancels what it acquired. The other servers are
// asked later, unless they are needed.
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
  // About the result of this try.
  bool waits_on() const { return result_ && *result_ && std::holds_alternative<Queued>(**result_); }
  template <class T>
  bool refuses() const {
    return result_ && *result_ && refusal_in<T>(**result_) != nullptr;
  }

  Token token_{};
};

}  // namespace rlock::lock
