#include "lock/quorum/closure.hpp"

#include <algorithm>

namespace rlock::lock {
namespace {

std::optional<std::string> id_of(const std::optional<Holder>& closure) {
  return closure ? std::optional(closure->owner) : std::nullopt;
}

bool is_done(const std::optional<Result<ClosureReply>>& reply) {
  return reply && *reply && **reply == ClosureReply::done;
}

bool is_changed(const std::optional<Result<ClosureReply>>& reply) {
  return reply && *reply && **reply == ClosureReply::changed;
}

}  // namespace

QuorumClosure::QuorumClosure(std::vector<Member>& members, const Quorum& quorum, ClosureCall call)
    : members_(members), quorum_(quorum), call_(std::move(call)) {
  InspectCall look{call_.name};
  look.waiters_page = 0;
  looking_.emplace(
      members_, [look](LockInspector& store, size_t, TimePoint) { return store.inspect(look); },
      timing::kQuorumInspectLimit);
}

void QuorumClosure::wants(std::vector<pollfd>& out) const {
  if (looking_) return looking_->wants(out);
  (undoing_ ? *undoing_ : *setting_).wants(out);
}

TimePoint QuorumClosure::due() const {
  if (looking_) return std::min(close_at_, looking_->due());
  return std::min(close_at_, (undoing_ ? *undoing_ : *setting_).due());
}

bool QuorumClosure::advance(TimePoint now) {
  if (result_) return true;
  if (looking_) {
    looking_->advance(now);
    if (has_enough(*looking_, quorum_, now, close_at_)) on_looked(now);
  } else if (!undoing_) {
    setting_->advance(now);
    if (has_enough(*setting_, quorum_, now, close_at_)) on_set(now);
  } else {
    undoing_->advance(now);
    if (is_undone()) on_undone();
  }
  return result_.has_value();
}

// The clocks of the servers differ: each counts from its own look.
void QuorumClosure::on_looked(TimePoint now) {
  const Replies<Snapshot> seen = looking_->replies();
  auto all = *merge_replies(seen, quorum_, Collecting::closed);
  if (!all) {
    result_ = std::move(all).error();
    return;
  }
  const auto present = id_of(all->closure);
  const bool own = present && present == call_.id;
  if (present && !own && present != call_.seen) {
    result_ = ClosureReply::changed;
    return;
  }
  auto make_request = [call = call_, seen](LockInspector& store, size_t i,
                                           TimePoint) -> InFlight<ClosureReply> {
    if (!seen[i] || !*seen[i]) return nullptr;
    ClosureCall one = call;
    one.seen = id_of((*seen[i])->closure);
    one.looked = (*seen[i])->now;
    return store.set_closure(one);
  };
  looking_.reset();
  close_at_ = TimePoint::max();
  setting_.emplace(members_, make_request, timing::kQuorumInspectLimit);
  setting_->advance(now);
}

void QuorumClosure::on_set(TimePoint now) {
  set_ = setting_->replies();
  const auto& replies = set_;
  const auto done = static_cast<size_t>(std::count_if(replies.begin(), replies.end(), is_done));
  if (done >= quorum_.majority()) {
    result_ = ClosureReply::done;
    return;
  }
  const bool changed = std::any_of(replies.begin(), replies.end(), is_changed);
  if (!call_.id) {
    if (changed) {
      result_ = ClosureReply::changed;
    } else {
      result_ = too_few(done);
    }
    return;
  }
  // Also where no answer came: it may be closed there.
  std::vector<bool> may_be_closed;
  for (const auto& reply : replies) may_be_closed.push_back(!is_changed(reply));
  auto open = [call = call_, may_be_closed](LockInspector& store, size_t i,
                                            TimePoint) -> InFlight<ClosureReply> {
    if (!may_be_closed[i]) return nullptr;
    ClosureCall one{call.name};
    one.seen = call.id;
    one.record = call.record;
    return store.set_closure(one);
  };
  setting_.reset();  // its connections are wanted
  undoing_.emplace(members_, open, timing::kQuorumInspectLimit);
  close_at_ = TimePoint::max();
  undoing_->advance(now);
}

// Where no answer came before, none is waited for.
bool QuorumClosure::is_undone() const {
  for (size_t i = 0; i < set_.size(); ++i) {
    if (is_done(set_[i]) && !undoing_->replies()[i]) return false;
  }
  return true;
}

void QuorumClosure::on_undone() {
  const auto& replies = set_;
  if (std::any_of(replies.begin(), replies.end(), is_changed)) {
    result_ = ClosureReply::changed;
    return;
  }
  Error error =
      too_few(static_cast<size_t>(std::count_if(replies.begin(), replies.end(), is_done)));
  std::string open, closed;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (!is_done(replies[i])) continue;
    std::string& list = is_done(undoing_->replies()[i]) ? open : closed;
    list += (list.empty() ? "" : ", ") + quorum_.servers[i];
  }
  if (!open.empty()) error.text += "; opened again: " + open;
  if (!closed.empty()) error.text += "; still closed: " + closed;
  error.retry = Retry::never;  // its id has ended
  result_ = std::move(error);
}

Error QuorumClosure::too_few(size_t done) const {
  Error error = too_few_servers(quorum_, errors_of(set_));
  const std::string counted = std::to_string(done) + " of " + std::to_string(quorum_.size()) +
                              " servers, " + std::to_string(quorum_.majority()) + " required";
  error.text = "\"" + call_.name.text() + "\" was " + (call_.id ? "closed" : "opened") +
               " on only " + counted + ": " + error.text;
  return error;
}

Answered QuorumClosure::answered() const {
  return looking_ ? looking_->answered() : Answered::yes;
}

}  // namespace rlock::lock
