#pragma once

#include "lock/quorum_judge.hpp"
#include "util/random.hpp"

namespace rlock::lock {

// The longest that one server is waited for: 5 % of the ttl within 50 ms and 2 s.
Millis server_limit(Millis ttl);

// Where several tries share the servers so that none has a majority, one that does not wait tries
// so often: each time one of the rivals is likely to get through.
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
  std::optional<Ticket> ticket{};  // the greatest under which it waits
  std::optional<Gone> gone{};      // removed or forced by an operator
  std::optional<Holder> rival{};   // the other owner with the most servers; `servers` says how many

  size_t answered() const { return granted + queued + busy + refused; }
};
Tally tally(const Ballots<AcquireReply>& ballots);

// One try to get the lock at a majority of the servers: asks all, and once they have granted it, or
// cannot any more, leaves it to the kind of try what follows. What goes back goes back last.
class QuorumTry : public Reply<AcquireReply> {
 public:
  struct Try {
    AcquireCall call;  // with ticket, attempt and owner of this try
    // Tries in a row in which nobody is known to have had a majority: before this one, and with it
    // once it is taken. The next try comes a little later each time.
    uint64_t& splits;
  };

  QuorumTry(std::vector<Member>& members, const Electorate& electorate, util::Random& random,
            Try one);

  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  util::Answered answered() const override { return answered_; }
  util::Result<AcquireReply> take() override;

 protected:
  virtual void granted(const Tally& heard, TimePoint now) = 0;
  virtual void not_granted(const Tally& heard, TimePoint now) = 0;
  // What there is to do between the grants and the end.
  virtual void go_on(TimePoint) {}

  bool waits() const { return try_.call.queueing == Queueing::wait; }
  util::Error too_few_answered() const;
  Millis pause_after_split();
  // The try is over with result_ once that is done, at `close_at` at the latest, but not before
  // `pause_until`.
  void give_back(Ask<CancelReply> ask, TimePoint close_at, TimePoint pause_until);

  std::vector<Member>& members_;
  const Electorate& electorate_;
  util::Random& random_;
  Try try_;
  Millis limit_;
  std::optional<TimePoint> started_;
  std::optional<Broadcast<AcquireReply>> asking_;
  std::optional<util::Result<AcquireReply>> result_;

 private:
  void hear(TimePoint now);

  TimePoint close_at_ = TimePoint::max();  // nobody is waited for any longer
  TimePoint pause_until_ = TimePoint::min();
  std::optional<Broadcast<CancelReply>> giving_back_;
  bool split_ = false;
  util::Answered answered_ = util::Answered::no;
};

}  // namespace rlock::lock
