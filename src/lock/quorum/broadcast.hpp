#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock/inspector.hpp"
#include "lock/timing.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

// Sends one request to all servers of a quorum at the same time.
namespace rlock::lock {

// The servers, a majority of which decides.
struct Quorum {
  std::vector<std::string> servers;  // their labels, in the order of the replies

  size_t size() const { return servers.size(); }
  size_t majority() const { return servers.size() / 2 + 1; }
};

// What happens to an earlier request that a server has not answered. finish: it is driven to its
// end. abandon: nothing more of it is sent, because it could acquire what the next request cancels;
// and the next request goes over a fresh connection, because it must not wait for a server that
// hangs.
enum class OnPending { finish, abandon };

// A server of a quorum, over one connection.
struct Member {
  std::unique_ptr<LockServer> store;
  std::unique_ptr<Request> pending{};  // an earlier request, for which the majority did not wait
  TimePoint pending_until{};

  // Handles the earlier request. Returns true if the next request may be sent.
  bool ready(TimePoint now, OnPending on_pending) {
    if (!pending) return true;
    bool over =
        on_pending == OnPending::abandon ? pending->finish_reading(now) : pending->advance(now);
    if (!over && on_pending == OnPending::finish && now < pending_until) return false;
    pending.reset();
    return true;
  }
};

// Makes the request to one server, sent at `now`; null if this server is not asked.
template <class T>
using RequestMaker = std::function<InFlight<T>(LockServer& store, size_t member, TimePoint now)>;

// A request that undoes what this process has acquired. A server that this process never reached
// stores nothing of it, so rlock does not connect to a hanging server for that.
template <class T, class Make>
InFlight<T> where_reached(LockServer& store, Make make_request) {
  if (store.was_reached()) return make_request(store);
  return ready<T>(Error{ErrorKind::unavailable, store.server() + ": no answer", Retry::later});
}

// The reply of each server; nullopt while the server is silent, and if it was not asked.
template <class T>
using Replies = std::vector<std::optional<Result<T>>>;

template <class T>
class Broadcast {
 public:
  // `limit`: for each server. After that the server counts as failed and its connection is given
  // up.
  Broadcast(std::vector<Member>& members, RequestMaker<T> make_request, Millis limit,
            OnPending on_pending = OnPending::finish)
      : members_(members),
        make_request_(std::move(make_request)),
        limit_(limit),
        on_pending_(on_pending),
        requests_(members.size()),
        replies_(members.size()),
        open_(members.size()) {}
  Broadcast(const Broadcast&) = delete;
  Broadcast& operator=(const Broadcast&) = delete;

  ~Broadcast() {
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (!requests_[i].request) continue;
      members_[i].pending = std::move(requests_[i].request);
      members_[i].pending_until = requests_[i].give_up_at;
    }
  }

  // Call this before driving it: the other servers are left out until ask_rest().
  void ask_only(const std::vector<bool>& first) {
    for (size_t i = 0; i < requests_.size(); ++i) requests_[i].left_out = !first[i];
  }
  void ask_rest() {
    for (ServerRequest& request : requests_) request.left_out = false;
  }

  void wants(std::vector<pollfd>& out) const {
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (const Request* request = in_flight(i)) request->wants(out);
    }
  }

  TimePoint due() const {
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

  void advance(TimePoint now) {
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (!requests_[i].rests()) advance(i, now);
    }
  }

  const Replies<T>& replies() const { return replies_; }
  // The number of servers that may still reply, and how many of them have not been asked.
  size_t open() const { return open_; }
  size_t left_out() const {
    return static_cast<size_t>(
        std::count_if(requests_.begin(), requests_.end(),
                      [](const ServerRequest& request) { return request.left_out; }));
  }

  Answered answered() const {
    auto spoke = [](const auto& reply) {
      return reply && (*reply || reply->error().answered == Answered::yes);
    };
    bool any = std::any_of(replies_.begin(), replies_.end(), spoke);
    return any ? Answered::yes : Answered::no;
  }

 private:
  struct ServerRequest {
    InFlight<T> request;
    TimePoint give_up_at;
    bool closed = false;
    bool left_out = false;

    bool rests() const { return closed || left_out; }
  };

  const Request* in_flight(size_t i) const {
    if (requests_[i].rests()) return nullptr;
    return requests_[i].request ? requests_[i].request.get() : members_[i].pending.get();
  }

  void advance(size_t i, TimePoint now) {
    ServerRequest& sent = requests_[i];
    if (!sent.request && !send(i, now)) return;
    if (sent.request->advance(now)) {
      close(i, sent.request->take());
    } else if (now >= sent.give_up_at) {
      close(i, Error{ErrorKind::unavailable,
                     util::format("{}: no answer in {}", members_[i].store->server(),
                                  util::format_duration(limit_)),
                     Retry::later});
    }
  }

  bool send(size_t i, TimePoint now) {
    Member& member = members_[i];
    if (!member.ready(now, on_pending_)) return false;
    requests_[i].request = make_request_(*member.store, i, now);
    requests_[i].give_up_at = now + limit_;
    if (!requests_[i].request) close(i, std::nullopt);
    return requests_[i].request != nullptr;
  }

  void close(size_t i, std::optional<Result<T>> reply) {
    replies_[i] = std::move(reply);
    requests_[i].closed = true;
    requests_[i].request.reset();
    --open_;
  }

  std::vector<Member>& members_;
  RequestMaker<T> make_request_;
  Millis limit_;
  OnPending on_pending_;
  std::vector<ServerRequest> requests_;
  Replies<T> replies_;
  size_t open_;
};

enum class Collecting { open, closed };  // closed: the request no longer waits for any server

template <class T>
std::vector<const T*> answers(const Replies<T>& replies) {
  std::vector<const T*> all;
  for (const auto& reply : replies) {
    if (reply && *reply) all.push_back(&**reply);
  }
  return all;
}

template <class T>
size_t count_answers(const Replies<T>& replies) {
  return answers(replies).size();
}

// When the request stops waiting for servers that have not replied.
enum class WaitFor {
  certainty,  // once the result is certain
  majority,   // a moment after a majority has answered
  nobody,     // a moment after the request began
};

// A request to all servers whose replies `merge` turns into one; nullopt while the result is not
// certain.
template <class T, class R = T>
class QuorumRequest final : public Reply<R> {
 public:
  using Merge = std::function<std::optional<Result<R>>(const Replies<T>&, Collecting)>;

  QuorumRequest(std::unique_ptr<Broadcast<T>> broadcast, size_t majority, WaitFor wait_for,
                Merge merge)
      : broadcast_(std::move(broadcast)),
        majority_(majority),
        wait_for_(wait_for),
        merge_(std::move(merge)) {}

  void wants(std::vector<pollfd>& out) const override { broadcast_->wants(out); }
  TimePoint due() const override {
    return result_ ? broadcast_->due() : std::min(broadcast_->due(), close_at_);
  }

  bool advance(TimePoint now) override {
    broadcast_->advance(now);
    if (result_) return true;
    if (is_enough()) close_at_ = std::min(close_at_, now + timing::kStragglerTime);
    const bool closed = broadcast_->open() == 0 || now >= close_at_;
    result_ = merge_(broadcast_->replies(), closed ? Collecting::closed : Collecting::open);
    return result_.has_value();
  }

  bool has_stragglers() const override { return broadcast_->open() > 0; }
  Answered answered() const override { return broadcast_->answered(); }
  Result<R> take() override { return *std::move(result_); }

 private:
  bool is_enough() const {
    if (wait_for_ == WaitFor::nobody) return true;
    return wait_for_ == WaitFor::majority && count_answers(broadcast_->replies()) >= majority_;
  }

  std::unique_ptr<Broadcast<T>> broadcast_;
  size_t majority_;
  WaitFor wait_for_;
  Merge merge_;
  TimePoint close_at_ = TimePoint::max();
  std::optional<Result<R>> result_;
};

}  // namespace rlock::lock
