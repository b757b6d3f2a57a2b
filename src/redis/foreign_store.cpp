#include "redis/foreign_store.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "lock/refused.hpp"
#include "redis/call.hpp"

namespace rlock::redis {
namespace {

using lock::Millis;

// What every one of these scripts returns: a word, and who holds it or held it.
struct Told {
  std::string word;
  std::optional<lock::Holder> holder;
};

lock::Holder holder_in(const redisReply& reply) {
  constexpr size_t kOwner = 1;
  constexpr size_t kEntries = 2;
  constexpr size_t kLeft = 3;
  const redisReply& owner = *reply.element[kOwner];
  lock::Holder holder;
  if (owner.type == REDIS_REPLY_STRING) holder.owner.assign(owner.str, owner.len);
  holder.entries = static_cast<uint64_t>(std::max(0LL, reply.element[kEntries]->integer));
  holder.left = bounded_span(reply.element[kLeft]->integer);
  return holder;
}

std::optional<Told> decode_told(const redisReply& reply) {
  constexpr size_t kWithHolder = 4;
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements == 0) return std::nullopt;
  const redisReply& word = *reply.element[0];
  if (word.type != REDIS_REPLY_STRING) return std::nullopt;
  Told told{{word.str, word.len}, {}};
  if (reply.elements == kWithHolder) told.holder = holder_in(reply);
  bool known = told.holder
                   ? told.word == "held" || told.word == "freed"
                   : told.word == "granted" || told.word == "extended" || told.word == "gone";
  return known ? std::optional(std::move(told)) : std::nullopt;
}

// A release, which notes in `released` for whom it may have reached a server. Where it has not, a
// lease that is gone at the next try ended without us.
class Releasing final : public lock::Reply<lock::ReleaseReply> {
 public:
  Releasing(lock::InFlight<lock::ReleaseReply> asked, const Link& link, const lock::Owner& owner,
            std::string& released)
      : asked_(std::move(asked)),
        link_(link),
        owner_(owner.text()),
        released_(released),
        again_(released == owner_) {}
  void wants(std::vector<pollfd>& out) const override { asked_->wants(out); }
  util::TimePoint due() const override { return asked_->due(); }
  bool advance(util::TimePoint now) override {
    bool ended = asked_->advance(now);
    released_ = again_ || link_.may_have_arrived() ? owner_ : "";
    return ended;
  }
  bool settled(util::TimePoint now) override { return asked_->settled(now); }
  util::Result<lock::ReleaseReply> take() override { return asked_->take(); }

 private:
  lock::InFlight<lock::ReleaseReply> asked_;
  const Link& link_;
  std::string owner_;
  std::string& released_;
  bool again_;
};

// What these locks cannot answer.
template <class T>
lock::InFlight<T> refused(const char* why) {
  return std::make_unique<lock::Refused<T>>(util::Error{util::ErrorKind::usage, why});
}

// Sooner where the lease ends before; 0 is for ever to nobody here.
Millis look_again(Millis retry, const lock::Holder& holder) {
  Millis end = holder.left + Millis(1);
  if (holder.left < Millis(0)) return retry > Millis(0) ? retry : Millis::max();
  return retry > Millis(0) ? std::min(retry, end) : end;
}

std::optional<std::string> force_owner(const lock::ForceTarget& target) {
  if (const auto* owner = std::get_if<lock::Owner>(&target)) return owner->text();
  return std::nullopt;
}

}  // namespace

ForeignStore::ForeignStore(std::unique_ptr<Link> link, Scripts scripts)
    : link_(std::move(link)), scripts_(scripts) {}

template <class T, class Read>
lock::InFlight<T> ForeignStore::call(const lua::Script& script, const char* verb,
                                     const lock::LockName& name, std::vector<std::string> arguments,
                                     Read read) {
  std::vector<std::string> words{"EVALSHA", std::string(script.sha1), "1", name.text()};
  std::move(arguments.begin(), arguments.end(), std::back_inserter(words));
  const auto purpose = &script == &scripts_.release ? Purpose::for_good : Purpose::usual;
  auto asked =
      std::make_unique<Call<Told>>(*link_, std::move(words), about(verb, name),
                                   without_context<Told, decode_told>, "", &script, purpose);
  return std::make_unique<Asked<Told, T>>(std::move(asked), [this, read](Told& told) -> T {
    if (told.holder) told.holder->owner = shown(std::move(told.holder->owner));
    return read(told);
  });
}

lock::InFlight<lock::AcquireReply> ForeignStore::acquire(const lock::AcquireCall& call) {
  bool waits = call.queueing == lock::Queueing::wait;
  auto read = [waits, retry = retry_after()](Told& told) -> lock::AcquireReply {
    if (!told.holder) return lock::Granted{};
    if (!waits) return lock::Busy{std::move(told.holder)};
    lock::Queued queued;
    queued.position = 0;
    queued.look_again = look_again(retry, *told.holder);
    queued.holder = std::move(told.holder);
    return queued;
  };
  return this->call<lock::AcquireReply>(scripts_.acquire, "acquire", call.name,
                                        {stored(call.owner), std::to_string(call.ttl.count())},
                                        read);
}

lock::InFlight<lock::RenewReply> ForeignStore::renew(const lock::RenewCall& call) {
  bool outer = call.entry == lock::Entry::outer();
  auto read = [outer](Told& told) -> lock::RenewReply {
    if (told.holder) return lock::Lost{lock::LostHow::taken, std::move(told.holder), {}};
    if (told.word == "gone") return lock::Lost{lock::LostHow::gone, std::nullopt, {}};
    if (!outer) return lock::Upgrade{};
    return lock::Renewal::extended;
  };
  return this->call<lock::RenewReply>(scripts_.renew, "renew", call.name,
                                      {stored(call.owner), std::to_string(call.ttl.count())}, read);
}

lock::InFlight<lock::ReleaseReply> ForeignStore::release(const lock::ReleaseCall& call) {
  // Where the reply of the first one was lost nothing remembers that it did its work.
  bool again = released_ == call.owner.text();
  auto read = [again](Told& told) -> lock::ReleaseReply {
    bool ours = told.word == "freed" || (again && told.word == "gone");
    return {ours ? lock::Ending::released : lock::Ending::unknown, {}};
  };
  auto asked = this->call<lock::ReleaseReply>(scripts_.release, "release", call.name,
                                              {stored(call.owner)}, read);
  return std::make_unique<Releasing>(std::move(asked), *link_, call.owner, released_);
}

lock::InFlight<lock::CancelReply> ForeignStore::cancel(const lock::CancelCall& call) {
  auto read = [](Told& told) {
    return told.word == "freed" ? lock::CancelReply::gave_back : lock::CancelReply::absent;
  };
  return this->call<lock::CancelReply>(scripts_.release, "give back", call.name,
                                       {stored(call.owner)}, read);
}

lock::InFlight<lock::ForceReply> ForeignStore::force_unlock(const lock::ForceCall& call) {
  bool by_token = std::holds_alternative<lock::Token>(call.target);
  auto read = [by_token](Told& told) -> lock::ForceReply {
    if (by_token || told.word == "held") return lock::NoMatch{};
    if (!told.holder) return lock::NotHeld{};
    return lock::Forced{{std::move(*told.holder)}, {}, {}};
  };
  auto owner = force_owner(call.target);
  const lua::Script& script = by_token ? scripts_.inspect : scripts_.release;
  std::string held_by = owner ? stored(lock::Owner::foreign(*owner)) : std::string();
  return this->call<lock::ForceReply>(script, "force-unlock", call.name, {held_by}, read);
}

lock::InFlight<lock::Snapshot> ForeignStore::inspect(const lock::InspectCall& call) {
  auto read = [](Told& told) {
    lock::Snapshot snapshot;
    snapshot.known = told.holder.has_value();
    snapshot.live_holders = told.holder ? 1 : 0;
    if (told.holder) snapshot.holders.push_back(std::move(*told.holder));
    return snapshot;
  };
  return this->call<lock::Snapshot>(scripts_.inspect, "inspect", call.name, {}, read);
}

lock::InFlight<std::vector<lock::Past>> ForeignStore::history(const lock::LockName&, uint64_t) {
  return refused<std::vector<lock::Past>>("locks of this format have no history");
}

lock::InFlight<lock::NamesPage> ForeignStore::list_names(const std::string&) {
  return refused<lock::NamesPage>(
      "a NAME is needed: nothing tells which keys are locks of this format");
}

}  // namespace rlock::redis
