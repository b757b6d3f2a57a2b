#pragma once

#include "lock/quorum_judge.hpp"
#include "util/random.hpp"

namespace rlock::lock {

// The longest that one server is waited for: 5 % of the ttl within 50 ms and 2 s.
Millis server_limit(Millis ttl);

// Since a majority has answered and its answers leave it open: how long a slow server still gets,
// as long again.
Millis straggler_grace(util::Nanos since_asked);

// Where several tries share the servers so that none has a majority: never fast enough to spin,
// never in step with a rival.
Millis split_pause(uint64_t splits, util::Random& random);
// One that does not wait tries so often: each time one of the rivals is likely to get through.
inline constexpr uint64_t kMostSplits = 6;

// What was sent on the way out is on its way by then.
inline constexpr Millis kGiveBack{50};

// What the answers to one acquire come to.
struct Tally {
  size_t granted = 0;
  size_t queued = 0;
  size_t busy = 0;
  size_t refused = 0;  // the owner has had its end there
  Token greatest{};
  uint64_t position = 1;
  uint64_t waiters = 0;
  std::optional<Millis> look_again{};
  std::optional<Gone> gone{};     // removed or forced by an operator
  std::optional<Holder> rival{};  // the other owner with the most servers; `servers` says how many

  size_t answered() const { return granted + queued + busy + refused; }
};
Tally tally(const Ballots<AcquireReply>& ballots);

// One try to get the lock at a majority of the servers: asks all; with a majority's grants writes
// the greatest token back under the owner check, and the lock is held when a majority has confirmed
// that and some of the lease is left; else gives back what it took. [PROTOCOL, Quorum]
class QuorumAcquire : public Reply<AcquireReply> {
 public:
  struct Try {
    AcquireCall call;  // with ticket and attempt
    // Tries in a row in which nobody is known to have had a majority: before this one, and with it
    // once it is taken. The next try comes a little later each time.
    uint64_t& splits;
  };
  QuorumAcquire(std::vector<Member>& members, const Electorate& electorate, util::Random& random,
                Try one);

  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  util::Answered answered() const override { return answered_; }
  util::Result<AcquireReply> take() override;

 private:
  void hear(TimePoint now);
  void confirm();
  void hear_confirmations(TimePoint now);
  void not_granted(const Tally& tally, TimePoint now);
  void give_back(util::Result<AcquireReply> then, TimePoint now, TimePoint pause_until);
  std::vector<bool> debtors() const;
  CancelCall withdrawal() const;
  template <class T>
  bool holds() const {
    return result_ && *result_ && std::holds_alternative<T>(**result_);
  }
  bool waits() const { return try_.call.queueing == Queueing::wait; }
  AcquireReply try_again(const Tally& tally, Millis pause) const;
  Millis pause_after_split();

  std::vector<Member>& members_;
  const Electorate& electorate_;
  util::Random& random_;
  Try try_;
  Millis limit_;
  std::optional<TimePoint> started_;
  TimePoint close_at_ = TimePoint::max();  // enough have answered, and the others are slow
  TimePoint pause_until_ = TimePoint::min();
  std::optional<Broadcast<AcquireReply>> asking_;
  std::optional<Broadcast<RenewReply>> confirming_;
  std::optional<Broadcast<CancelReply>> giving_back_;
  Token token_{};
  bool split_ = false;
  util::Answered answered_ = util::Answered::no;
  std::optional<util::Result<AcquireReply>> result_;
};

}  // namespace rlock::lock
