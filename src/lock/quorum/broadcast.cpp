#include "lock/quorum/broadcast.hpp"

namespace rlock::lock {

BroadcastCore::BroadcastCore(std::vector<Member>& members, Millis limit, OnPending on_pending)
    : members_(members),
      limit_(limit),
      on_pending_(on_pending),
      requests_(members.size()),
      open_(members.size()) {}

BroadcastCore::~BroadcastCore() {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (!requests_[i].request) continue;
    members_[i].pending = std::move(requests_[i].request);
    members_[i].pending_until = requests_[i].give_up_at;
  }
}

void BroadcastCore::ask_only(const std::vector<bool>& first) {
  for (size_t i = 0; i < requests_.size(); ++i) requests_[i].left_out = !first[i];
}

void BroadcastCore::ask_rest() {
  for (ServerRequest& request : requests_) request.left_out = false;
}

void BroadcastCore::wants(std::vector<pollfd>& out) const {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (const Request* request = in_flight(i)) request->wants(out);
  }
}

TimePoint BroadcastCore::due() const {
  TimePoint earliest = TimePoint::max();
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i].rests()) continue;
    const Request* request = in_flight(i);
    if (request == nullptr) return TimePoint::min();
    TimePoint until = requests_[i].request ? requests_[i].give_up_at : members_[i].pending_until;
    earliest = std::min({earliest, until, request->due()});
  }
  return earliest;
}

void BroadcastCore::advance(TimePoint now) {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (!requests_[i].rests()) advance(i, now);
  }
}

size_t BroadcastCore::left_out() const {
  return static_cast<size_t>(
      std::count_if(requests_.begin(), requests_.end(),
                    [](const ServerRequest& request) { return request.left_out; }));
}

const Request* BroadcastCore::in_flight(size_t i) const {
  if (requests_[i].rests()) return nullptr;
  return requests_[i].request ? requests_[i].request.get() : members_[i].pending.get();
}

void BroadcastCore::advance(size_t i, TimePoint now) {
  ServerRequest& sent = requests_[i];
  if (!sent.request && !send(i, now)) return;
  if (sent.request->advance(now)) {
    close(i, keep(i, *sent.request));
  } else if (now >= sent.give_up_at) {
    close(i, keep(i, Error{ErrorKind::unavailable,
                           util::format("{}: no answer in {}", members_[i].store->server(),
                                        util::format_duration(limit_)),
                           Retry::later}));
  }
}

bool BroadcastCore::send(size_t i, TimePoint now) {
  Member& member = members_[i];
  if (!member.ready(now, on_pending_)) return false;
  requests_[i].request = make_request(*member.store, i, now);
  requests_[i].give_up_at = now + limit_;
  if (!requests_[i].request) close(i);
  return requests_[i].request != nullptr;
}

void BroadcastCore::close(size_t i) {
  requests_[i].closed = true;
  requests_[i].request.reset();
  --open_;
}

void BroadcastCore::close(size_t i, const Error* error) {
  if (error == nullptr) ++answers_;
  if (error == nullptr || error->answered == Answered::yes) answered_ = Answered::yes;
  close(i);
}

Collecting Patience::collecting(const BroadcastCore& broadcast, TimePoint now) {
  const bool enough = wait_for_ == WaitFor::nobody ||
                      (wait_for_ == WaitFor::majority && broadcast.answers() >= majority_);
  if (enough) close_at_ = std::min(close_at_, now + timing::kStragglerTime);
  return broadcast.open() == 0 || now >= close_at_ ? Collecting::closed : Collecting::open;
}

}  // namespace rlock::lock
