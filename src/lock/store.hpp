#pragma once

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lock/timing.hpp"
#include "lock/types.hpp"

namespace rlock::lock {

// A request in flight: it never blocks; its driver polls for it. Destroying an unfinished request
// abandons it: the server may or may not have carried it out.
class Request {
 public:
  virtual ~Request() = default;
  // Appends the descriptors and events to poll for now.
  virtual void wants(std::vector<pollfd>& out) const = 0;
  // When advance() is due even without an event; TimePoint::max() for never.
  virtual TimePoint due() const = 0;
  // Proceeds as far as it can without blocking. True once the result is available.
  virtual bool advance(TimePoint now) = 0;
  // Before it is done: whether any server has replied.
  virtual Answered answered() const { return Answered::no; }
  // After it is done: whether some servers, for which the result did not wait, have yet to receive
  // it. They receive it if the request is driven further.
  virtual bool has_stragglers() const { return false; }
  // For an abandoned request: reads what has come and sends nothing. True if the answer is
  // complete, so that the connection is free for another request.
  virtual bool finish_reading(TimePoint) { return false; }
};

template <class T>
class Reply : public Request {
 public:
  // Call once, after advance() has returned true.
  virtual Result<T> take() = 0;
};

template <class T>
using InFlight = std::unique_ptr<Reply<T>>;

template <class T>
class ReadyReply final : public Reply<T> {
 public:
  explicit ReadyReply(Result<T> result) : result_(std::move(result)) {}
  void wants(std::vector<pollfd>&) const override {}
  TimePoint due() const override { return TimePoint::min(); }
  bool advance(TimePoint) override { return true; }
  Result<T> take() override { return std::move(result_); }

 private:
  Result<T> result_;
};

// A request that needs no server.
template <class T>
InFlight<T> ready(Result<T> result) {
  return std::make_unique<ReadyReply<T>>(std::move(result));
}

template <class T, class U>
class FollowedReply final : public Reply<U> {
 public:
  using Next = std::function<InFlight<U>(Result<T> result, Nanos took)>;

  FollowedReply(InFlight<T> first, Next next) : first_(std::move(first)), next_(std::move(next)) {}
  void wants(std::vector<pollfd>& out) const override {
    if (first_) return first_->wants(out);
    second_->wants(out);
  }
  TimePoint due() const override { return first_ ? first_->due() : second_->due(); }
  Answered answered() const override { return first_ ? first_->answered() : Answered::yes; }
  bool advance(TimePoint now) override {
    if (!began_) began_ = now;
    if (first_) {
      if (!first_->advance(now)) return false;
      Result<T> result = first_->take();
      first_.reset();  // `next` may need its connections
      second_ = next_(std::move(result), now - *began_);
    }
    return second_->advance(now);
  }
  Result<U> take() override { return second_->take(); }

 private:
  InFlight<T> first_;
  InFlight<U> second_;
  Next next_;
  std::optional<TimePoint> began_;
};

// A request, and then the request that `next` makes from its result or error and the time it took.
template <class U, class T>
InFlight<U> then(InFlight<T> first, typename FollowedReply<T, U>::Next next) {
  return std::make_unique<FollowedReply<T, U>>(std::move(first), std::move(next));
}

// The rules of a later version of rlock that a lock or a run has and that this version does not
// know. [docs/PROTOCOL.md, "Versions"]
struct NewerRules {
  std::string version{};             // the first that knows all of them
  std::vector<std::string> words{};  // `!weights`, sorted
};

// granted: the holder has not claimed its grant yet. revoked: broken by an operator, and the holder
// has not confirmed that. cooldown: the run has ended, and the lock stays held until `left` has
// passed (Claim::min_hold).
enum class HolderState { granted, held, revoked, cooldown };

struct Holder {
  std::string owner{};  // as stored: hostile until parsed
  HolderState state = HolderState::held;
  Token token{};
  Limit limit = Limit::exclusive();
  ServerTime since{};  // 0: unknown, and so is `held`
  Millis held{0};
  std::optional<Millis> left{};  // until the lease expires; nullopt: it never expires
  Millis ttl{0};                 // the ttl of its renewals; 0 for a cool-down
  uint64_t entries = 0;
  Responsive responsive = Responsive::yes;
  std::string record{};  // opaque bytes of the holder: who, where, what (made and read by cli)
  uint64_t servers = 1;  // how many servers store its lease
  uint64_t slot = 0;     // among several holders; 0: none
  Millis min_hold{0};    // from `since` on, even if the run ends earlier
  std::optional<NewerRules> needs{};
  // Whether its process has exited without releasing the lock: cli knows it of this host's holders.
  bool died = false;
};

// The holder with this owner id; null if there is none.
inline const Holder* find_holder(std::span<const Holder> holders, std::string_view owner) {
  const auto found = std::find_if(holders.begin(), holders.end(),
                                  [&](const Holder& holder) { return holder.owner == owner; });
  return found == holders.end() ? nullptr : &*found;
}

// The state of a closed lock: until it ends, the server grants the lock only to
// AcquireCall::while_closed.
struct Closure {
  std::string id{};  // a new one for each closure
  ServerTime since{};
  ServerTime until{};
  Millis left{0};
  std::string record{};  // opaque: who closed it and why
  uint64_t servers = 1;  // how many servers of a quorum store it
};

// What prevents a run from acquiring the lock: one of its holders, or its closure.
using Obstacle = std::variant<Holder, Closure>;

// Returns null if there is no obstacle, or if it is the closure.
inline const Holder* holder_in(const std::optional<Obstacle>& obstacle) {
  return obstacle ? std::get_if<Holder>(&*obstacle) : nullptr;
}
inline bool is_closure(const std::optional<Obstacle>& obstacle) {
  return obstacle && std::holds_alternative<Closure>(*obstacle);
}
// The owner of a holder, or the id of a closure.
inline const std::string& id_of(const Obstacle& obstacle) {
  const auto* holder = std::get_if<Holder>(&obstacle);
  return holder != nullptr ? holder->owner : std::get<Closure>(obstacle).id;
}
// The obstacle as it is `age` after the reply that described it, if nothing has happened since.
inline Obstacle aged(Obstacle obstacle, Millis age) {
  if (auto* closure = std::get_if<Closure>(&obstacle)) {
    closure->left = std::max(Millis(0), closure->left - age);
    return obstacle;
  }
  auto& holder = std::get<Holder>(obstacle);
  if (holder.since.ms != 0) holder.held += age;
  if (holder.left) holder.left = std::max(Millis(0), *holder.left - age);
  return obstacle;
}

struct Waiter {
  std::string owner{};
  Limit limit = Limit::exclusive();
  ServerTime since{};
  Millis waiting{0};
  std::string record{};
  Ticket ticket{};
  uint64_t servers = 1;  // how many servers have it in their queues
  Millis silent{0};      // time since its last heartbeat, if it has missed one; else 0
  std::optional<NewerRules> needs{};
};

// How an owner ended at the server. [docs/PROTOCOL.md, "Release and tombstones"] forgotten: the
// server, which remembers how owners end, has lost that. unknown: the server remembers nothing, so
// it may be any of these.
enum class OwnerEnd { expired, released, cancelled, removed, forced, forgotten, unknown };

// ---- done once: which earlier run makes a run unnecessary [docs/PROTOCOL.md, "Done once"] ----

// key: a run with the same key has succeeded. period: a run has succeeded that began to ask in the
// same period of its host's calendar. within: a run has succeeded that was granted the lock after
// this run began to ask, or that had begun to ask less than `span` before this run.
enum class OnceKind { key, period, within };
struct Once {
  OnceKind kind = OnceKind::key;
  std::string key{};  // key: 1-200 bytes; period: for example `day:2026-11-22`; else empty
  Millis span{0};     // period: the longest that such a period can be; within: the distance; else 0
  std::optional<uint64_t> max_failures{};  // after so many failed runs since the last success

  bool operator==(const Once&) const = default;
};

// Only the newest of the waiters with this option stays: the one with the greatest number or,
// without numbers, the latest.
struct Supersede {
  std::optional<uint64_t> number{};
};

// What an owner asks for. An acquire and each renewal carry it, because a renewal may have to
// restore a lease that the server has lost.
struct Claim {
  LockName name;
  Owner owner;
  Limit limit = Limit::exclusive();
  Millis ttl{30'000};
  Millis min_hold{0};
  Responsive responsive = Responsive::yes;
  std::string record{};
  std::optional<Once> once{};
  std::optional<Supersede> supersede{};
  // How many rows the history keeps from this run on; nullopt: 100.
  std::optional<uint64_t> history_rows{};
  uint64_t replicas =
      0;  // how many have to confirm it; a renewal that they do not confirm has failed
};

// ---- acquire: asks for the lock, keeps the position in the queue, claims a grant ----

enum class Queueing { wait, never };

struct AcquireCall : Claim {
  Queueing queueing = Queueing::wait;
  std::optional<uint64_t> max_queue{};  // busy immediately if so many are already waiting
  Ticket ticket{};                      // its position in the queue, in case the server lost it
  uint64_t attempt = 0;                 // for a server of a quorum: the number of the try; else 0
  Millis asked{0};                      // how long ago this owner first asked; with `once`
  Token forgotten{};          // with `once`, for a server of a quorum: what other servers reported
  bool numbered = false;      // slots were requested, even if only one: a lone holder has slot 1
  bool while_closed = false;  // a closure does not prevent the grant
  Millis urgent{0};           // the queue treats the owner as if it had arrived so much earlier
};

struct Granted {
  Token token{};
  std::optional<Owner> owner{};  // the owner that holds the lock, if a try has its own owner
  uint64_t slot = 0;             // among several holders: from 1, unique among them; else 0
  Token forgotten{};             // with `once`: marks up to this token are void at all servers
  // Claim::replicas: why too few replicas have confirmed the grant. The command must not run before
  // they have confirmed a renewal.
  std::optional<Error> unconfirmed{};
};
struct Queued {
  Ticket ticket{};
  uint64_t position = 1;               // 1 is the head; 0 if there is no order
  std::optional<Millis> look_again{};  // sooner than after the slice, if a lease may expire before
  std::optional<Obstacle> obstacle{};
  std::optional<Millis> slice{};      // how long to block; longer if many waiters are ahead
  Token forgotten{};                  // with `once`: as in Granted
  std::optional<NewerRules> needs{};  // only a server that knows these rules grants the lock
};
struct Busy {
  std::optional<Obstacle> obstacle{};
  uint64_t waiters = 0;
  Token forgotten{};  // with `once`: as in Granted
};
// The owner has ended at the server; a late request must not restore it.
struct OwnerEnded {
  OwnerEnd ending = OwnerEnd::released;
  std::string note{};  // opaque bytes of the operator who broke or removed it
};
// The script had much to sweep; the client asks again immediately.
struct RetryNow {};
// Claim::once: the work is done already, so the command does not run.
struct AlreadyDone {
  ServerTime at{};  // when the run that did the work ended
  Millis took{0};
  std::string record{};  // of that run
  Token token{};         // of that run
};
// Once::max_failures is reached.
struct FailedTooOften {
  uint64_t times = 0;
  Token last{};  // of the last failure, or a smaller token; void once marks up to it are forgotten
};
// Claim::supersede: a newer run waits, or has waited.
struct Superseded {
  std::string record{};              // of the newer run
  std::optional<uint64_t> number{};  // of the newer run, if the server reports it
  ServerTime granted{};              // when the newer run was granted the lock; else 0
  ServerTime since{};                // since when the newer run has waited; else 0
};
// Why the owner does not get the lock, and need not ask again.
using Refused = std::variant<Busy, OwnerEnded, AlreadyDone, FailedTooOften, Superseded>;
using AcquireReply = std::variant<Granted, Queued, Refused, RetryNow>;

// The refusal T in a reply, or in what follows from it; null if there is another one, or none.
template <class T, class Outcome>
auto* refusal_in(Outcome&& outcome) {
  auto* refused = std::get_if<Refused>(&outcome);
  return refused != nullptr ? std::get_if<T>(refused) : nullptr;
}

// ---- heartbeat: keeps the position of a waiter far from the head ----

// The waiter only has to keep waiting.
struct StillQueued {
  uint64_t position = 1;
  Millis slice{0};     // as in Queued
  std::string holder;  // the id of the obstacle
  Millis left{0};      // until the obstacle ends
};
// RetryNow: the waiter has to ask with acquire().
using HeartbeatReply = std::variant<StillQueued, RetryNow>;

// ---- renew: extend the lease, restore it after data loss, enter a held lock ----

// Lets a renewal restore the lease on a server that has lost it or never had it, if no other owner
// can have held the lock since it was granted with this token.
struct Restore {
  Token token;    // 0: the format has no tokens, and restores nothing
  uint64_t slot;  // as granted; it is restored too, or the lease is lost
  // The end of the lease as far as the holder knows. Another owner may have had the lock after it,
  // so a quorum restores nothing after it, and nothing if it is unknown. A single server itself
  // knows whether another owner had the lock.
  std::optional<TimePoint> lease_end;
  // For a server of a quorum: how far the clock that issued the token may be ahead of the server's
  // clock, and the number of the try whose grant this confirms; 0 for a renewal.
  Millis ahead{0};
  uint64_t attempt = 0;
};

struct RenewCall : Claim {
  Entry entry;
  std::optional<Restore> restore;  // nullopt: an expired lease is lost
  bool record_changed = false;     // an extension stores the record too, as a restore does
};

enum class Renewal { extended, restored };
enum class LostHow {
  deleted,   // by hand, or evicted
  taken,     // another owner was granted it since
  full,      // no slot is free next to the present holders
  expired,   // the lease expired, and this call brought no token to restore it
  released,  // by this owner id
  forced,    // broken by an operator
  gone,      // expired, deleted or lost at the server, which remembers nothing
  unissued,  // the call brought a token that the server cannot have issued
};
// Returns a phrase for a message.
constexpr const char* to_string(LostHow how) {
  constexpr const char* kWords[] = {"deleted",
                                    "taken by another owner",
                                    "all slots are taken",
                                    "expired",
                                    "released with its owner id",
                                    "broken by an operator",
                                    "gone from the server",
                                    "lost, and its token is ahead of the server's clock"};
  return kWords[static_cast<size_t>(how)];
}
// What the server knows about the time since a lease was granted.
enum class LaterHolder { unknown, nobody, another };
struct Lost {
  LostHow how = LostHow::deleted;
  std::optional<Holder> by{};                       // the present holder
  std::string note{};                               // of the operator who broke it
  LaterHolder later_holder = LaterHolder::unknown;  // if `how` does not imply it
  bool data_lost = false;                           // by the server, since the grant
};
// No re-entry: the requested mode does not fit into the held one (exclusive inside shared), or this
// kind of lock has no entries.
struct Upgrade {};
using RenewReply = std::variant<Renewal, Lost, Upgrade>;

// ---- release and cancel ----

// unused: nothing ran under the lock, so there is no cool-down. by_id: the caller knows only the
// owner's id, and must not end a live run.
enum class ReleaseHow { released, unused, by_id };
// How a run with `once` ended. The script that releases also marks a success as done.
struct OnceResult {
  Once once;
  Millis asked{0};  // how long ago the run first asked
  Token token{};    // if the lease is gone: marked unless a later token was granted since
  bool succeeded = false;
  Millis waited{0};  // from the first request until the request that was granted
};
struct ReleaseCall {
  LockName name;
  Owner owner;
  Entry entry = Entry::outer();
  // How the run ended, for the history: `exit:7`, `signal:9`; no blanks. `stopped`: rlock was asked
  // to stop it and it returned 0, which is neither a success nor a failure.
  std::string result = "-";
  ReleaseHow how = ReleaseHow::released;
  std::optional<OnceResult> once{};
  uint64_t replicas = 0;  // as in Claim
  // The token of the outer run's hold, so that its run is in the history even if the server lost
  // the hold. Not sent to a quorum, because most of its servers may have it.
  Token run{};
  std::string record{};
};
// no_room: marked, and the least recently used keys were forgotten to make room.
enum class Marked { no, yes, no_room };
// `ending`: how the owner ended: released, now or before, or in another way before.
struct ReleaseReply {
  OwnerEnd ending = OwnerEnd::released;
  std::string note{};
  std::optional<Holder> run{};  // by_id: the live run that holds the lock; nothing was changed
  Marked marked = Marked::no;   // with ReleaseCall::once
  Millis left{0};  // how long others that run under the lock keep it unless they renew it
};

// timed_out: counts as a skip in the history. attempt_only, for a server of a quorum: cancels what
// a failed attempt acquired there; the owner may come back with the next attempt.
enum class CancelHow { cancelled, timed_out, removed, attempt_only };
struct CancelCall {
  LockName name;
  Owner owner;
  CancelHow how = CancelHow::cancelled;
  std::string note{};    // with removed: who removed it and why
  uint64_t attempt = 0;  // with attempt_only: which attempt
  Ticket ticket{};       // with attempt_only: the ticket to keep; 0: none
};
// still_holds: only with removed; nothing was changed.
enum class CancelReply { was_queued, was_granted, not_found, still_holds };

// ---- wait ----

enum class Wake { woken, slept };

// Which servers a grant has reached. In a quorum: a majority, or all its servers. one_master: over
// Sentinel, whose failover may lose the grant.
enum class GrantReach { majority, everywhere, one_master };

// What holders and waiters ask of a server. Each call is atomic at the server. If its reply is
// lost, it may be sent again with the same arguments.
class LockStore {
 public:
  virtual ~LockStore() = default;
  virtual InFlight<AcquireReply> acquire(const AcquireCall& call) = 0;
  // Only keeps the position of a waiter that is far from the head, which costs the server a
  // fraction of acquire(). Null if a waiter always has to use acquire().
  virtual InFlight<HeartbeatReply> heartbeat(const LockName&, const Owner&) { return nullptr; }
  virtual InFlight<RenewReply> renew(const RenewCall& call) = 0;
  virtual InFlight<ReleaseReply> release(const ReleaseCall& call) = 0;
  virtual InFlight<CancelReply> cancel(const CancelCall& call) = 0;
  // Over a quorum: brings the last grant to the servers that have not confirmed it yet. Null if no
  // early renewals are needed. The caller destroys it before the next request.
  virtual InFlight<GrantReach> complete_grant() { return nullptr; }
  // Over Sentinel: returns an Error if a failover is in progress that may lose what the server has
  // just acknowledged. Null if there are no sentinels. Waits at most for `patience` for a sentinel
  // that the others do not need. The caller destroys it before the next request.
  virtual InFlight<Done> check_failover(Millis /*patience*/) { return nullptr; }
  // Blocks at the server until this owner is woken or `slice` has passed: a hint, never the truth.
  virtual InFlight<Wake> wait_for_wake(const LockName& name, const Owner& owner, Millis slice) = 0;
  // False until a server has answered on a connection of this process. Until then no request that
  // changes a lock was sent.
  virtual bool was_reached() const { return true; }
  // The address for messages, without a password.
  virtual std::string server() const = 0;
};

// Makes `change`, and then checks whether a failover may lose it: an Error if so. `first` keeps the
// reply to the first of several such requests.
template <class T>
InFlight<T> outlasting(LockStore& store, InFlight<T> change, std::optional<Result<T>>& first) {
  return then<T>(std::move(change), [&](Result<T> reply, Nanos) -> InFlight<T> {
    if (!reply) return ready<T>(std::move(reply));
    if (!first) first = std::move(reply);
    auto check = store.check_failover(timing::kLongestFailoverCheck);
    if (!check) return ready<T>(*first);
    return then<T>(std::move(check), [&first](Result<Done> outlasts, Nanos) {
      return ready<T>(outlasts ? *first : Result<T>(std::move(outlasts).error()));
    });
  });
}

// Makes a further connection to the same server: for the renewal thread and the revocation
// listener.
using MakeStore = std::function<std::unique_ptr<LockStore>()>;

}  // namespace rlock::lock
