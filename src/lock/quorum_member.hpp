#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock/store.hpp"
#include "util/duration.hpp"

// One request to all servers of a quorum at once. [DESIGN, Servers: Quorum]
namespace rlock::lock {

// What comes of an earlier request that a server has not answered: it is driven to its end, or left
// as it is. Then nothing more of it is sent, since that could take what the next request gives
// back, and that next one goes over a fresh connection, since it must not wait for a hung server.
enum class Turn { after, instead };

// A server of a quorum, over one connection.
struct Member {
  std::unique_ptr<LockStore> store;
  std::unique_ptr<Request> behind{};  // an earlier request, for which the majority did not wait
  TimePoint behind_until{};

  // Sees to what is behind; true when the next request may be sent.
  bool ready(TimePoint now, Turn turn) {
    if (!behind) return true;
    bool over = turn == Turn::instead ? behind->settled(now) : behind->advance(now);
    if (!over && turn == Turn::after && now < behind_until) return false;
    behind.reset();
    return true;
  }
};

// To one server, sent at `now`; null where this one is not asked.
template <class T>
using Ask = std::function<InFlight<T>(LockStore& store, size_t member, TimePoint now)>;

// What each server said; nothing as long as it is silent, and where it was not asked.
template <class T>
using Ballots = std::vector<std::optional<util::Result<T>>>;

template <class T>
class Broadcast {
 public:
  // `limit`: for each server; then it counts as failed and its connection is given up.
  Broadcast(std::vector<Member>& members, Ask<T> ask, Millis limit, Turn turn = Turn::after)
      : members_(members),
        ask_(std::move(ask)),
        limit_(limit),
        turn_(turn),
        legs_(members.size()),
        ballots_(members.size()),
        open_(members.size()) {}
  Broadcast(const Broadcast&) = delete;
  Broadcast& operator=(const Broadcast&) = delete;

  ~Broadcast() {
    for (size_t i = 0; i < legs_.size(); ++i) {
      if (!legs_[i].request) continue;
      members_[i].behind = std::move(legs_[i].request);
      members_[i].behind_until = legs_[i].give_up_at;
    }
  }

  void wants(std::vector<pollfd>& out) const {
    for (size_t i = 0; i < legs_.size(); ++i) {
      if (const Request* request = in_flight(i)) request->wants(out);
    }
  }

  TimePoint due() const {
    TimePoint earliest = TimePoint::max();
    for (size_t i = 0; i < legs_.size(); ++i) {
      if (legs_[i].closed) continue;
      const Request* request = in_flight(i);
      if (request == nullptr) return TimePoint::min();
      TimePoint until = legs_[i].request ? legs_[i].give_up_at : members_[i].behind_until;
      earliest = std::min({earliest, until, request->due()});
    }
    return earliest;
  }

  // True when something was said that was not known before.
  bool advance(TimePoint now) {
    size_t before = open_;
    for (size_t i = 0; i < legs_.size(); ++i) {
      if (!legs_[i].closed) advance(i, now);
    }
    return open_ < before;
  }

  const Ballots<T>& ballots() const { return ballots_; }
  size_t open() const { return open_; }  // servers that may still say something

  util::Answered answered() const {
    auto spoke = [](const auto& ballot) {
      return ballot && (*ballot || ballot->error().answered == util::Answered::yes);
    };
    bool any = std::any_of(ballots_.begin(), ballots_.end(), spoke);
    return any ? util::Answered::yes : util::Answered::no;
  }

 private:
  struct Leg {
    InFlight<T> request;
    TimePoint give_up_at;
    bool closed = false;
  };

  const Request* in_flight(size_t i) const {
    if (legs_[i].closed) return nullptr;
    return legs_[i].request ? legs_[i].request.get() : members_[i].behind.get();
  }

  void advance(size_t i, TimePoint now) {
    Leg& leg = legs_[i];
    if (!leg.request && !send(i, now)) return;
    if (leg.request->advance(now)) {
      close(i, leg.request->take());
    } else if (now >= leg.give_up_at) {
      close(i, util::Error{
                   util::ErrorKind::unavailable,
                   members_[i].store->server() + ": no answer in " + util::format_duration(limit_),
                   util::Retry::later});
    }
  }

  bool send(size_t i, TimePoint now) {
    Member& member = members_[i];
    if (!member.ready(now, turn_)) return false;
    legs_[i].request = ask_(*member.store, i, now);
    legs_[i].give_up_at = now + limit_;
    if (!legs_[i].request) close(i, std::nullopt);
    return legs_[i].request != nullptr;
  }

  void close(size_t i, std::optional<util::Result<T>> ballot) {
    ballots_[i] = std::move(ballot);
    legs_[i].closed = true;
    legs_[i].request.reset();
    --open_;
  }

  std::vector<Member>& members_;
  Ask<T> ask_;
  Millis limit_;
  Turn turn_;
  std::vector<Leg> legs_;
  Ballots<T> ballots_;
  size_t open_;
};

}  // namespace rlock::lock
