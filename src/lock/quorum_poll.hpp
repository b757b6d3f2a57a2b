#pragma once

#include "lock/quorum_judge.hpp"

namespace rlock::lock {

// Whether an answer ends the poll once it is certain, or all are heard that answer soon.
enum class Patience { majority, everyone };

// A request to all servers whose answers make one. [quorum_judge]
template <class T>
class Poll final : public Reply<T> {
 public:
  struct Terms {
    Millis limit;
    Turn turn = Turn::after;
    Patience patience = Patience::majority;
  };

  Poll(std::vector<Member>& members, const Electorate& electorate, Ask<T> ask, const Terms& terms)
      : broadcast_(members, std::move(ask), terms.limit, terms.turn),
        electorate_(electorate),
        patience_(terms.patience) {}

  void wants(std::vector<pollfd>& out) const override { broadcast_.wants(out); }
  TimePoint due() const override {
    return result_ ? broadcast_.due() : std::min(broadcast_.due(), close_at_);
  }

  bool advance(TimePoint now) override {
    broadcast_.advance(now);
    if (result_) return true;
    bool enough = answers(broadcast_.ballots()) >= electorate_.majority();
    if (patience_ == Patience::everyone && enough) {
      close_at_ = std::min(close_at_, now + kStragglers);
    }
    bool closed = broadcast_.open() == 0 || now >= close_at_;
    result_ = judge(broadcast_.ballots(), electorate_, closed ? Polls::closed : Polls::open);
    return result_.has_value();
  }

  bool lingers() const override { return broadcast_.open() > 0; }
  util::Answered answered() const override { return broadcast_.answered(); }
  util::Result<T> take() override { return *std::move(result_); }

 private:
  // After a majority has answered.
  static constexpr Millis kStragglers{100};

  Broadcast<T> broadcast_;
  const Electorate& electorate_;
  Patience patience_;
  TimePoint close_at_ = TimePoint::max();
  std::optional<util::Result<T>> result_;
};

}  // namespace rlock::lock
