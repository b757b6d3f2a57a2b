#include "lock/quorum/closure.hpp"

#include <algorithm>

#include "lock/timing.hpp"

namespace rlock::lock {
namespace {

// A look at the lock on all servers, then a request that depends on it.
template <class T>
class LookFirst : public Reply<T> {
 public:
  LookFirst(std::vector<Member>& members, const Quorum& quorum, const LockName& name)
      : members_(members), quorum_(quorum) {
    InspectCall look{name};
    look.waiters_page = 0;
    looking_.emplace(
        members_, [look](LockInspector& store, size_t, TimePoint) { return store.inspect(look); },
        timing::kQuorumInspectLimit);
  }

  void wants(std::vector<pollfd>& out) const override {
    if (looking_) return looking_->wants(out);
    asking_->wants(out);
  }
  TimePoint due() const override {
    return std::min(close_at_, looking_ ? looking_->due() : asking_->due());
  }
  Answered answered() const override { return looking_ ? looking_->answered() : Answered::yes; }
  Result<T> take() override { return *std::move(result_); }

  bool advance(TimePoint now) override {
    if (result_) return true;
    if (looking_) {
      looking_->advance(now);
      if (has_enough(*looking_, quorum_, now, close_at_)) on_looked();
    }
    if (asking_) {
      asking_->advance(now);
      if (is_answered(now)) on_answered();
    }
    return result_.has_value();
  }

 protected:
  // What the servers have, and what that is together: asks, or has the result.
  virtual void on_looked(const Replies<Snapshot>& seen, const Snapshot& all) = 0;
  virtual bool is_answered(TimePoint now) { return has_enough(*asking_, quorum_, now, close_at_); }
  virtual void on_answered() = 0;

  // The connections of the request before are wanted.
  void ask(RequestMaker<T> make_request) {
    looking_.reset();
    close_at_ = TimePoint::max();
    asking_.emplace(members_, std::move(make_request), timing::kQuorumInspectLimit);
  }

  std::vector<Member>& members_;
  const Quorum& quorum_;
  std::optional<Broadcast<T>> asking_;
  std::optional<Result<T>> result_;

 private:
  void on_looked() {
    const Replies<Snapshot> seen = looking_->replies();
    auto all = *merge_replies(seen, quorum_, Collecting::closed);
    if (all) return on_looked(seen, *all);
    result_ = std::move(all).error();
  }

  std::optional<Broadcast<Snapshot>> looking_;
  TimePoint close_at_ = TimePoint::max();
};

// The last that any server granted, or what was before it while that one runs. A grant that no
// majority has confirmed runs nothing: a request that came late may have left it.
Token last_ended(const Replies<Snapshot>& replies, const Snapshot& merged) {
  for (const Holder& holder : merged.holders) {
    const bool runs = holder.state == HolderState::held || holder.state == HolderState::revoked;
    if (runs && holder.token.value > 0) return {holder.token.value - 1};
  }
  Token last{};
  for (const Snapshot* one : answers(replies)) last = std::max(last, one->last_grant);
  return last;
}

class QuorumForget final : public LookFirst<Forgotten> {
 public:
  QuorumForget(std::vector<Member>& members, const Quorum& quorum, const ForgetCall& call)
      : LookFirst(members, quorum, call.name), call_(call) {}

 private:
  void on_looked(const Replies<Snapshot>& seen, const Snapshot& all) override {
    call_.through = last_ended(seen, all);
    ask([call = call_](LockInspector& store, size_t, TimePoint) { return store.forget(call); });
  }
  void on_answered() override {
    result_ = merge_replies(asking_->replies(), quorum_, Collecting::closed);
  }

  ForgetCall call_;
};

std::optional<std::string> id_of(const std::optional<Holder>& closure) {
  return closure ? std::optional(closure->owner) : std::nullopt;
}

bool is_done(const std::optional<Result<ClosureReply>>& reply) {
  return reply && *reply && **reply == ClosureReply::done;
}

bool is_changed(const std::optional<Result<ClosureReply>>& reply) {
  return reply && *reply && **reply == ClosureReply::changed;
}

class QuorumClosure final : public LookFirst<ClosureReply> {
 public:
  QuorumClosure(std::vector<Member>& members, const Quorum& quorum, const ClosureCall& call)
      : LookFirst(members, quorum, call.name), call_(call) {}

 private:
  // The clocks of the servers differ: each counts from its own look.
  void on_looked(const Replies<Snapshot>& seen, const Snapshot& all) override {
    const auto present = id_of(all.closure);
    if (present && present != call_.id && present != call_.seen) {
      result_ = ClosureReply::changed;
      return;
    }
    auto set = [call = call_, seen](LockInspector& store, size_t i,
                                    TimePoint) -> InFlight<ClosureReply> {
      if (!seen[i] || !*seen[i]) return nullptr;
      ClosureCall one = call;
      one.seen = id_of((*seen[i])->closure);
      one.looked = (*seen[i])->now;
      return store.set_closure(one);
    };
    ask(set);
  }

  // Where no answer to the closure came, none to the opening is waited for.
  bool is_answered(TimePoint now) override {
    if (set_.empty()) return LookFirst::is_answered(now);
    for (size_t i = 0; i < set_.size(); ++i) {
      if (is_done(set_[i]) && !asking_->replies()[i]) return false;
    }
    return true;
  }

  void on_answered() override {
    if (!set_.empty()) return on_undone();
    set_ = asking_->replies();
    if (count_done() >= quorum_.majority()) {
      result_ = ClosureReply::done;
    } else if (call_.id) {
      undo();
    } else {
      result_ = any_changed() ? Result<ClosureReply>(ClosureReply::changed) : too_few();
    }
  }

  // Also where no answer came: it may be closed there.
  void undo() {
    auto open = [call = call_, set = set_](LockInspector& store, size_t i,
                                           TimePoint) -> InFlight<ClosureReply> {
      if (is_changed(set[i])) return nullptr;
      ClosureCall one{call.name};
      one.seen = call.id;
      one.record = call.record;
      return store.set_closure(one);
    };
    ask(open);
  }

  void on_undone() {
    if (any_changed()) {
      result_ = ClosureReply::changed;
      return;
    }
    Error error = too_few();
    std::string open, closed;
    for (size_t i = 0; i < set_.size(); ++i) {
      if (!is_done(set_[i])) continue;
      std::string& list = is_done(asking_->replies()[i]) ? open : closed;
      list += (list.empty() ? "" : ", ") + quorum_.servers[i];
    }
    if (!open.empty()) error.text += "; opened again: " + open;
    if (!closed.empty()) error.text += "; still closed: " + closed;
    error.retry = Retry::never;  // its id has ended
    result_ = std::move(error);
  }

  size_t count_done() const {
    return static_cast<size_t>(std::count_if(set_.begin(), set_.end(), is_done));
  }
  bool any_changed() const { return std::any_of(set_.begin(), set_.end(), is_changed); }

  Error too_few() const {
    Error error = too_few_servers(quorum_, errors_of(set_));
    const std::string counted = std::to_string(count_done()) + " of " +
                                std::to_string(quorum_.size()) + " servers, " +
                                std::to_string(quorum_.majority()) + " required";
    error.text = "\"" + call_.name.text() + "\" was " + (call_.id ? "closed" : "opened") +
                 " on only " + counted + ": " + error.text;
    return error;
  }

  ClosureCall call_;
  Replies<ClosureReply> set_;  // once they are there
};

}  // namespace

InFlight<ClosureReply> set_closure_at_all(std::vector<Member>& members, const Quorum& quorum,
                                          const ClosureCall& call) {
  return std::make_unique<QuorumClosure>(members, quorum, call);
}

InFlight<Forgotten> forget_at_all(std::vector<Member>& members, const Quorum& quorum,
                                  const ForgetCall& call) {
  return std::make_unique<QuorumForget>(members, quorum, call);
}

}  // namespace rlock::lock
