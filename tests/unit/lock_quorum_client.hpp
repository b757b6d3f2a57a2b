#pragma once

#include <algorithm>
#include <cstdint>

#include "lock/lease.hpp"
#include "support/quorum_network.hpp"

// A client of a quorum of simulated servers: it acquires, renews, loses and releases by itself.
namespace rlock::test {

inline constexpr Millis kTtl{1000};

class WorldRandom final : public util::Random {
 public:
  explicit WorldRandom(SimWorld& world) : world_(world) {}
  uint64_t next() override { return world_.next(); }

 private:
  SimWorld& world_;
};

struct Setting {
  size_t servers = 5;
  size_t clients = 4;
  Rules rules{};
  NetworkFaults network{};
  Nanos lasts{15s};
  Nanos short_hold{100ms};
  double long_holds = 0.3;  // several leases long
  Nanos pause{200ms};       // between two acquisitions of a client
  Nanos ahead{0};           // the clock of the first client
  Nanos period{0};          // in which the work is to be done once; 0: it is done each time
};

// A client that takes the lock again and again.
class Client {
 public:
  Client(SimWorld& world, WorldRandom& random, const Setting& setting,
         std::vector<lock::MakeServer> makers, Nanos ahead)
      : world_(world),
        random_(random),
        setting_(setting),
        ahead_(ahead),
        makers_(std::move(makers)),
        next_(world.now() + world.up_to(setting.pause)) {}

  bool holds() const { return token_.value != 0 && world_.now() < deadline_; }

  TimePoint due() const {
    TimePoint due = next_;
    if (acquire_) due = std::min(due, acquire_->due());
    if (wake_) due = std::min(due, wake_->due());
    if (completion_) due = std::min(due, completion_->due());
    if (renew_) due = std::min(due, renew_->due());
    if (end_) due = std::min(due, end_->due());
    if (release_) due = std::min(due, release_->due());
    return std::max(due, world_.now() + 10us);
  }

  // Proceeds as far as possible; true when the lock has just been granted.
  bool advance() {
    const TimePoint now = world_.now();
    if (end_) return ending(now);
    if (release_) return releasing(now);
    if (acquire_) return acquiring(now);
    if (wake_) return waiting(now);
    if (token_.value != 0) return holding(now);
    if (now < next_) return false;
    if (!store_) begin(now);
    ask(now);
    return false;
  }
  lock::Token token() const { return token_; }
  // What it does, or has done, once.
  const std::string& work() const { return work_; }
  bool has_marked() { return std::exchange(has_marked_, false); }
  bool was_done() { return std::exchange(was_done_, false); }

 private:
  std::unique_ptr<lock::LockStore> open() {
    return std::make_unique<lock::QuorumStore>(
        makers_,
        lock::QuorumSources{random_, [this] {
                              return static_cast<uint64_t>(
                                  (world_.now().time_since_epoch() + ahead_).count() / 1000);
                            }});
  }

  void begin(TimePoint now) {
    owner_ = lock::Owner::fresh(random_);
    store_ = open();
    give_up_ = now + 5s + world_.up_to(20s);
    ticket_ = {};
    if (setting_.period.count() > 0) {
      work_ = std::to_string(now.time_since_epoch() / setting_.period);
    }
  }

  std::optional<lock::Once> once() const {
    if (work_.empty()) return std::nullopt;
    return lock::Once{lock::OnceKind::period, work_, 24h, {}};
  }

  void ask(TimePoint now) {
    lock::AcquireCall call{name_, *owner_};
    call.ttl = kTtl;
    call.ticket = ticket_;
    call.once = once();
    acquire_ = store_->acquire(call);
    sent_at_ = now;
    next_ = now + 2s;
  }

  bool acquiring(TimePoint now) {
    if (!acquire_->advance(now)) {
      // Often in the middle of a try: what was sent arrives all the same.
      if (now < next_) return false;
      acquire_.reset();
      return now >= give_up_ ? leave(now) : pause(now);
    }
    auto reply = acquire_->take();
    acquire_.reset();
    if (!reply) return now >= give_up_ ? leave(now) : pause(now);
    if (const auto* granted = std::get_if<lock::Granted>(&*reply)) return hold(granted->token, now);
    was_done_ = std::holds_alternative<lock::AlreadyDone>(*reply);
    if (was_done_) return forget(now);
    const auto* queued = std::get_if<lock::Queued>(&*reply);
    if (queued == nullptr || now >= give_up_) return leave(now);
    ticket_ = queued->ticket;
    Millis slice = std::min(Millis(5000), queued->look_again.value_or(Millis(5000)));
    wake_ = store_->wait_for_wake(name_, *owner_, slice);
    next_ = now + slice + 1s;
    return false;
  }

  bool waiting(TimePoint now) {
    if (!wake_->advance(now) && now < next_) return false;
    wake_.reset();
    ask(now);
    return false;
  }

  bool hold(lock::Token token, TimePoint now) {
    token_ = token;
    deadline_ = lock::lease_deadline(sent_at_, kTtl);
    until_ = now + world_.up_to(world_.chance(setting_.long_holds) ? Nanos(3 * kTtl)
                                                                   : setting_.short_hold);
    renew_at_ = sent_at_ + kTtl / 3;
    keeper_ = open();
    if (world_.chance(0.5)) completion_ = store_->complete_grant();  // the others' holds are short
    next_ = std::min(until_, renew_at_);
    return true;
  }

  bool holding(TimePoint now) {
    if (completion_ && completion_->advance(now)) completion_.reset();
    if (renew_ && (renew_->advance(now) || now >= renew_give_up_)) renewed(now);
    if (now >= until_ || now >= deadline_) {
      const bool crashes = world_.chance(0.1);
      renew_.reset();
      completion_.reset();
      const lock::Token token = std::exchange(token_, {});
      return crashes ? forget(now) : release(token, now);
    }
    if (!renew_ && now >= renew_at_) {
      lock::RenewCall call{name_, *owner_};
      call.token = token_;
      call.ttl = kTtl;
      call.valid_until = deadline_;
      renew_ = keeper_->renew(call);
      renew_sent_ = now;
      renew_give_up_ = now + kTtl / 6;
    }
    next_ = std::min({until_, deadline_, renew_ ? renew_give_up_ : renew_at_});
    return false;
  }

  void renewed(TimePoint now) {
    auto over = std::exchange(renew_, nullptr);
    renew_at_ = now + 20ms;
    if (!over->advance(now)) return;
    auto reply = over->take();
    if (!reply) return;
    if (std::holds_alternative<lock::Renewal>(*reply)) {
      deadline_ = std::max(deadline_, lock::lease_deadline(renew_sent_, kTtl));
      renew_at_ = renew_sent_ + kTtl / 3;
    } else {
      until_ = now;
    }
  }

  bool release(lock::Token token, TimePoint now) {
    lock::ReleaseCall call{name_, *owner_};
    if (auto work = once()) call.once = lock::OnceResult{*work, {}, token, true, {}};
    release_ = store_->release(call);
    next_ = now + 1s;
    return false;
  }
  bool releasing(TimePoint now) {
    const bool answered = release_->advance(now);
    if (!answered && now < next_) return false;
    if (answered) {
      auto reply = release_->take();
      has_marked_ = reply && reply->marked != lock::Marked::no;
    }
    release_.reset();
    return forget(now);
  }
  bool leave(TimePoint now) {
    end_ = std::unique_ptr<lock::Request>(store_->cancel({name_, *owner_}).release());
    next_ = now + 1s;
    return false;
  }
  bool pause(TimePoint now) {
    next_ = now + 20ms;
    return false;
  }
  bool ending(TimePoint now) {
    if (!end_->advance(now) && now < next_) return false;
    return forget(now);
  }
  bool forget(TimePoint now) {
    end_.reset();
    keeper_.reset();
    store_.reset();
    next_ = now + world_.up_to(setting_.pause);
    return false;
  }

  SimWorld& world_;
  WorldRandom& random_;
  const Setting& setting_;
  const Nanos ahead_;
  std::vector<lock::MakeServer> makers_;
  lock::LockName name_ = *lock::LockName::parse("job");
  std::optional<lock::Owner> owner_;
  std::unique_ptr<lock::LockStore> store_, keeper_;
  lock::InFlight<lock::AcquireReply> acquire_;
  lock::InFlight<lock::Wake> wake_;
  lock::InFlight<lock::GrantReach> completion_;
  lock::InFlight<lock::RenewReply> renew_;
  std::unique_ptr<lock::Request> end_;
  lock::InFlight<lock::ReleaseReply> release_;
  std::string work_;
  bool has_marked_ = false, was_done_ = false;
  lock::Ticket ticket_{};
  lock::Token token_{};
  TimePoint next_, sent_at_, deadline_, give_up_, until_, renew_at_, renew_sent_, renew_give_up_;
};

}  // namespace rlock::test
