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

// What a broadcast does, whatever the servers reply.
class BroadcastCore {
 public:
  BroadcastCore(const BroadcastCore&) = delete;
  BroadcastCore& operator=(const BroadcastCore&) = delete;

  // Call this before driving it: the other servers are left out until ask_rest().
  void ask_only(const std::vector<bool>& first);
  void ask_rest();

  void wants(std::vector<pollfd>& out) const;
  TimePoint due() const;
  void advance(TimePoint now);

  // The number of servers that may still reply, and how many of them have not been asked.
  size_t open() const { return open_; }
  size_t left_out() const;
  // The number of replies that are not errors.
  size_t answers() const { return answers_; }
  Answered answered() const { return answered_; }

 protected:
  BroadcastCore(std::vector<Member>& members, Millis limit, OnPending on_pending);
  virtual ~BroadcastCore();

 private:
  struct ServerRequest {
    std::unique_ptr<Request> request{};
    TimePoint give_up_at{};
    bool closed = false;
    bool left_out = false;

    bool rests() const { return closed || left_out; }
  };

  // Null if this server is not asked.
  virtual std::unique_ptr<Request> make_request(LockServer& store, size_t i, TimePoint now) = 0;
  // Stores the reply of a request that make_request() made, or why there is none. Returns the error
  // of the reply, or null.
  virtual const Error* keep(size_t i, Request& done) = 0;
  virtual const Error* keep(size_t i, Error error) = 0;

  const Request* in_flight(size_t i) const;
  void advance(size_t i, TimePoint now);
  bool send(size_t i, TimePoint now);
  void close(size_t i);
  void close(size_t i, const Error* error);

  std::vector<Member>& members_;
  Millis limit_;
  OnPending on_pending_;
  std::vector<ServerRequest> requests_;
  size_t open_;
  size_t answers_ = 0;
  Answered answered_ = Answered::no;
};

template <class T>
class Broadcast final : public BroadcastCore {
 public:
  // `limit`: for each server. After that the server counts as failed and its connection is given
  // up.
  Broadcast(std::vector<Member>& members, RequestMaker<T> make_request, Millis limit,
            OnPending on_pending = OnPending::finish)
      : BroadcastCore(members, limit, on_pending),
        make_request_(std::move(make_request)),
        replies_(members.size()) {}

  const Replies<T>& replies() const { return replies_; }

 private:
  std::unique_ptr<Request> make_request(LockServer& store, size_t i, TimePoint now) override {
    return make_request_(store, i, now);
  }
  const Error* keep(size_t i, Request& done) override {
    replies_[i] = static_cast<Reply<T>&>(done).take();
    return *replies_[i] ? nullptr : &replies_[i]->error();
  }
  const Error* keep(size_t i, Error error) override {
    replies_[i] = std::move(error);
    return &replies_[i]->error();
  }

  RequestMaker<T> make_request_;
  Replies<T> replies_;
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

// Decides when a request stops waiting.
class Patience {
 public:
  Patience(size_t majority, WaitFor wait_for) : majority_(majority), wait_for_(wait_for) {}

  Collecting collecting(const BroadcastCore& broadcast, TimePoint now);
  TimePoint close_at() const { return close_at_; }

 private:
  size_t majority_;
  WaitFor wait_for_;
  TimePoint close_at_ = TimePoint::max();
};

// A request to all servers whose replies `merge` turns into one; nullopt while the result is not
// certain.
template <class T, class R = T>
class QuorumRequest final : public Reply<R> {
 public:
  using Merge = std::function<std::optional<Result<R>>(const Replies<T>&, Collecting)>;

  QuorumRequest(std::unique_ptr<Broadcast<T>> broadcast, size_t majority, WaitFor wait_for,
                Merge merge)
      : broadcast_(std::move(broadcast)), patience_(majority, wait_for), merge_(std::move(merge)) {}

  void wants(std::vector<pollfd>& out) const override { broadcast_->wants(out); }
  TimePoint due() const override {
    return result_ ? broadcast_->due() : std::min(broadcast_->due(), patience_.close_at());
  }

  bool advance(TimePoint now) override {
    broadcast_->advance(now);
    if (result_) return true;
    result_ = merge_(broadcast_->replies(), patience_.collecting(*broadcast_, now));
    return result_.has_value();
  }

  bool has_stragglers() const override { return broadcast_->open() > 0; }
  Answered answered() const override { return broadcast_->answered(); }
  Result<R> take() override { return *std::move(result_); }

 private:
  std::unique_ptr<Broadcast<T>> broadcast_;
  Patience patience_;
  Merge merge_;
  std::optional<Result<R>> result_;
};

}  // namespace rlock::lock
