#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lock/quorum/quorum.hpp"
#include "support/sim_world.hpp"

// Servers of a quorum in memory, with a clock and a network of the test's own: messages are late,
// lost, doubled and out of order; servers stop, and start again with nothing. They keep the rules
// of the scripts as far as a quorum needs them, and a rule can be left out to see what it is good
// for.
namespace rlock::test {

using namespace std::chrono_literals;

struct Rules {
  bool owner_check = true;      // a write-back is accepted only from an owner that holds it, or may
  bool write_back = true;       // the majority's token reaches the servers
  bool attempts = true;         // what belongs to an older attempt changes nothing
  bool common_ticket = true;    // the client's, not the server's own
  bool ticket_bound = true;     // and none of the future
  bool mark_at_release = true;  // a success is marked by the step that frees the lock
};

// One server. Only exclusive locks, and only one of them.
class SimServer {
 public:
  SimServer(SimWorld& world, const Rules& rules, const NetworkFaults& network, Millis offset)
      : world_(world), rules_(rules), network_(network), offset_(offset) {}

  lock::AcquireReply acquire(const lock::AcquireCall& call) {
    sweep();
    const std::string& owner = call.owner.text();
    if (ended_.contains(owner) || late(owner, 2 * call.attempt)) {
      return lock::OwnerEnded{lock::OwnerEnd::cancelled, {}};
    }
    if (const lock::Token mark = mark_of(call.once); mark.value > 0) {
      end(owner);
      return lock::AlreadyDone{{}, {}, {}, mark};
    }
    if (!held_by(owner) && !queue_place(owner)) {
      if (queue_.empty() && !holder_) {
        stamp(owner, 2 * call.attempt);
        grant(owner, call.ttl);
        return lock::Granted{holder_->token, {}, 0, {forgotten_}};
      }
      if (call.queueing == lock::Queueing::never)
        return lock::Busy{current_holder(), queue_.size(), {forgotten_}};
      queue_.insert({ticket_of(call.ticket), owner});
    }
    stamp(owner, 2 * call.attempt);
    alive_[owner] = world_.now() + 15s;
    admit("");
    if (held_by(owner)) {
      holder_->ends = std::max(holder_->ends, world_.now() + call.ttl);
      return lock::Granted{holder_->token, {}, 0, {forgotten_}};
    }
    return place_of(owner, call.ticket);
  }

  lock::RenewReply renew(const lock::RenewCall& call) {
    sweep();
    const std::string& owner = call.owner.text();
    if (late(owner, 2 * call.attempt)) return lock::Lost{lock::LostHow::released, {}, {}};
    if (!held_by(owner)) {
      if (rules_.owner_check) {
        if (ended_.contains(owner)) return lock::Lost{lock::LostHow::released, {}, {}};
        if (call.token.value == 0 || grant_ > call.token.value) {
          return lock::Lost{lock::LostHow::taken, {}, {}};
        }
        if (holder_) return lock::Lost{lock::LostHow::full, {}, {}};
      }
      leave_queue(owner);
      holder_ = Hold{owner, world_.now(), call.token};
    }
    if (call.attempt > 0) stamp(owner, 2 * call.attempt);
    holder_->confirmed = true;
    holder_->ends = std::max(holder_->ends, world_.now() + call.ttl);
    if (rules_.write_back) {
      if (call.attempt > 0) holder_->token = call.token;
      last_ = std::max(last_, call.token.value);
      grant_ = std::max(grant_, call.token.value);
    }
    return lock::Renewal::extended;
  }

  lock::ReleaseReply release(const lock::ReleaseCall& call) {
    sweep();
    const bool held = held_by(call.owner.text());
    const lock::Marked marked = mark(call, held);
    end(call.owner.text());
    return {held ? lock::OwnerEnd::released : lock::OwnerEnd::expired, {}, {}, marked};
  }

  lock::Forgotten forget(const lock::ForgetCall& call) {
    forgotten_ = std::max(forgotten_, call.through.value);
    last_ = std::max(last_, call.through.value);
    return {};
  }
  lock::Snapshot inspect() {
    sweep();
    lock::Snapshot seen;
    seen.last_grant = {grant_};
    if (!holder_) return seen;
    seen.holders.push_back({.owner = holder_->owner, .token = holder_->token});
    return seen;
  }

  lock::CancelReply cancel(const lock::CancelCall& call) {
    sweep();
    const std::string& owner = call.owner.text();
    const bool held = held_by(owner);
    if (call.how != lock::CancelHow::attempt_only) {
      end(owner);
      return held ? lock::CancelReply::was_granted : lock::CancelReply::not_found;
    }
    if (ended_.contains(owner)) return lock::CancelReply::not_found;
    if (rules_.attempts && 2 * call.attempt + 1 <= stamps_[owner])
      return lock::CancelReply::not_found;
    stamp(owner, 2 * call.attempt + 1);
    if (held) holder_.reset();
    if (call.ticket.value == 0) leave_queue(owner);
    if (held && call.ticket.value != 0) {
      queue_.insert({ticket_of(call.ticket), owner});
      alive_[owner] = world_.now() + 15s;
    }
    admit(owner);
    return held ? lock::CancelReply::was_granted : lock::CancelReply::not_found;
  }

  // Blocks until woken; `on_wake` is called at most once.
  void listen(const std::string& owner, Nanos slice, std::function<void(lock::Wake)> on_wake) {
    if (wakes_.erase(owner) > 0) return on_wake(lock::Wake::woken);
    const uint64_t number = ++listeners_seen_;
    listeners_[owner] = {number, on_wake};
    world_.after(slice, [this, owner, number, on_wake] {
      auto found = listeners_.find(owner);
      if (found == listeners_.end() || found->second.number != number) return;
      listeners_.erase(found);
      on_wake(lock::Wake::slept);
    });
  }

  void restart_empty() {
    holder_.reset();
    queue_.clear();
    alive_.clear();
    ended_.clear();
    stamps_.clear();
    wakes_.clear();
    listeners_.clear();
    marks_.clear();
    last_ = grant_ = forgotten_ = 0;
    votes_from_ = world_.now() + 60s;
  }
  bool votes() const { return world_.now() >= votes_from_; }
  void hang_until(TimePoint then) { hangs_until_ = std::max(hangs_until_, then); }
  TimePoint answers_from() const { return hangs_until_; }
  bool empty() {
    sweep();
    return !holder_ && queue_.empty();
  }

 private:
  struct Hold {
    std::string owner;
    TimePoint ends;
    lock::Token token;
    bool confirmed = false;
  };
  struct Listener {
    uint64_t number;
    std::function<void(lock::Wake)> on_wake;
  };

  lock::Queued place_of(const std::string& owner, lock::Ticket given) {
    uint64_t position = 1;
    lock::Ticket stored = given;
    for (const auto& [ticket, waiter] : queue_) {
      stored = {ticket};
      if (waiter == owner) break;
      ++position;
    }
    std::optional<Millis> look;
    if (holder_) look = left() + position * 50ms;
    return lock::Queued{
        rules_.common_ticket ? stored : given, position, look, current_holder(), {}, {forgotten_}};
  }

  // Of what was forgotten none is left.
  lock::Token mark_of(const std::optional<lock::Once>& once) {
    const uint64_t token = once ? marks_[once->key] : 0;
    return {token > forgotten_ ? token : 0};
  }
  // Unless another was granted the lock since.
  lock::Marked mark(const lock::ReleaseCall& call, bool held) {
    if (!call.once || !call.once->succeeded) return lock::Marked::no;
    const uint64_t token = call.once->token.value;
    uint64_t& mark = marks_[call.once->once.key];
    if (mark == token) return lock::Marked::yes;
    if (token <= forgotten_ || (!held && (holder_ || grant_ > token))) return lock::Marked::no;
    if (rules_.mark_at_release) {
      mark = std::max(mark, token);
    } else {
      world_.after(4 * network_.usual, [&mark, token] { mark = std::max(mark, token); });
    }
    return lock::Marked::yes;
  }

  bool held_by(const std::string& owner) const { return holder_ && holder_->owner == owner; }
  bool queue_place(const std::string& owner) const {
    return std::any_of(queue_.begin(), queue_.end(),
                       [&](const auto& p) { return p.second == owner; });
  }
  void leave_queue(const std::string& owner) {
    std::erase_if(queue_, [&](const auto& place) { return place.second == owner; });
  }
  bool late(const std::string& owner, uint64_t stamp) {
    return rules_.attempts && stamp > 0 && stamp < stamps_[owner];
  }
  void stamp(const std::string& owner, uint64_t stamp) {
    stamps_[owner] = std::max(stamps_[owner], stamp);
  }
  Millis left() const { return std::chrono::ceil<Millis>(holder_->ends - world_.now()); }
  std::optional<lock::Holder> current_holder() const {
    if (!holder_) return std::nullopt;
    lock::Holder holder;
    holder.owner = holder_->owner;
    return holder;
  }

  uint64_t micros() const {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                     world_.now().time_since_epoch() + offset_)
                                     .count());
  }
  uint64_t ticket_of(lock::Ticket given) {
    if (!rules_.common_ticket) return ++own_tickets_;
    return rules_.ticket_bound ? std::min(given.value, micros()) : given.value;
  }

  void grant(const std::string& owner, Nanos ttl) {
    last_ = std::max(last_ + 1, micros());
    holder_ = Hold{owner, world_.now() + ttl, {last_}};
    if (!world_.chance(network_.forgets)) return;
    world_.after(world_.up_to(4 * network_.usual), [this, token = last_] {
      if (!holder_ || holder_->confirmed || holder_->token.value != token) return;
      holder_.reset();
      admit("");
    });
  }

  void admit(const std::string& excluded) {
    if (holder_ || queue_.empty()) return;
    const std::string head = queue_.begin()->second;
    if (head == excluded) return;
    queue_.erase(queue_.begin());
    grant(head, 2s);
    wake(head);
  }

  void wake(const std::string& owner) {
    auto found = listeners_.find(owner);
    if (found == listeners_.end()) {
      wakes_.insert(owner);
      return;
    }
    auto on_wake = found->second.on_wake;
    listeners_.erase(found);
    on_wake(lock::Wake::woken);
  }

  void sweep() {
    if (holder_ && holder_->ends <= world_.now()) holder_.reset();
    std::erase_if(queue_, [&](const auto& place) { return alive_[place.second] <= world_.now(); });
  }

  void end(const std::string& owner) {
    if (held_by(owner)) holder_.reset();
    leave_queue(owner);
    ended_.insert(owner);
    admit("");
  }

  SimWorld& world_;
  const Rules& rules_;
  const NetworkFaults& network_;
  Millis offset_;
  std::optional<Hold> holder_;
  std::set<std::pair<uint64_t, std::string>> queue_;
  std::map<std::string, TimePoint> alive_;
  std::set<std::string> ended_;
  std::map<std::string, uint64_t> stamps_;
  std::set<std::string> wakes_;
  std::map<std::string, Listener> listeners_;
  uint64_t listeners_seen_ = 0;
  uint64_t last_ = 0;
  uint64_t grant_ = 0;
  uint64_t own_tickets_ = 0;
  std::map<std::string, uint64_t> marks_;  // key → token of the run that did it
  uint64_t forgotten_ = 0;
  TimePoint votes_from_ = TimePoint::min();
  TimePoint hangs_until_ = TimePoint::min();
};

}  // namespace rlock::test
