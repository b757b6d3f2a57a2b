#pragma once

#include "lock/quorum/merge.hpp"
#include "lock/timing.hpp"

namespace rlock::lock {

// Whether an answer ends the poll once it is certain, or all are heard that answer soon.
enum class WaitFor { majority, everyone };

// A request to all servers whose answers make one. [quorum_judge]
template <class T>
class QuorumRequest final : public Reply<T> {
 public:
  struct Options {
    Millis limit;
    OnPending on_pending = OnPending::finish;
    WaitFor wait_for = WaitFor::majority;
  };

  QuorumRequest(std::vector<Member>& members, const Quorum& quorum, RequestMaker<T> make_request,
                const Options& options)
      : broadcast_(members, std::move(make_request), options.limit, options.on_pending),
        quorum_(quorum),
        wait_for_(options.wait_for) {}

  void wants(std::vector<pollfd>& out) const override { broadcast_.wants(out); }
  TimePoint due() const override {
    return result_ ? broadcast_.due() : std::min(broadcast_.due(), close_at_);
  }

  bool advance(TimePoint now) override {
    broadcast_.advance(now);
    if (result_) return true;
    bool enough = count_answers(broadcast_.replies()) >= quorum_.majority();
    if (wait_for_ == WaitFor::everyone && enough) {
      close_at_ = std::min(close_at_, now + timing::kStragglerTime);
    }
    bool closed = broadcast_.open() == 0 || now >= close_at_;
    result_ = merge_replies(broadcast_.replies(), quorum_,
                            closed ? Collecting::closed : Collecting::open);
    return result_.has_value();
  }

  bool has_stragglers() const override { return broadcast_.open() > 0; }
  Answered answered() const override { return broadcast_.answered(); }
  Result<T> take() override { return *std::move(result_); }

 private:
  Broadcast<T> broadcast_;
  const Quorum& quorum_;
  WaitFor wait_for_;
  TimePoint close_at_ = TimePoint::max();
  std::optional<Result<T>> result_;
};

}  // namespace rlock::lock
