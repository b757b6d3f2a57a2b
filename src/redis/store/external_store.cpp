#include "redis/store/external_store.hpp"

#include <algorithm>
#include <utility>

#include "redis/store/call.hpp"

namespace rlock::redis {
namespace {

// The reply of each of these scripts: `granted`, `extended` or `gone`, or `held` or `freed` with a
// holder.
struct ScriptReply {
  std::string_view word;
  std::optional<lock::Holder> holder{};
};

lock::Holder holder_in(const redisReply& reply) {
  constexpr size_t kOwner = 1;
  constexpr size_t kEntries = 2;
  constexpr size_t kLeft = 3;
  const redisReply& owner = *reply.element[kOwner];
  lock::Holder holder;
  if (owner.type == REDIS_REPLY_STRING) holder.owner.assign(owner.str, owner.len);
  holder.entries = static_cast<uint64_t>(std::max(0LL, reply.element[kEntries]->integer));
  const Millis left = bounded_span(reply.element[kLeft]->integer);
  if (left >= Millis(0)) holder.left = left;
  return holder;
}

std::optional<ScriptReply> decode_script_reply(const redisReply& reply) {
  constexpr size_t kWithHolder = 4;
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements == 0) return std::nullopt;
  const std::string_view word = text_of(*reply.element[0]);
  if (word == "held" || word == "freed") {
    if (reply.elements != kWithHolder) return std::nullopt;
    return ScriptReply{word, holder_in(reply)};
  }
  const bool known = word == "granted" || word == "extended" || word == "gone";
  if (!known || reply.elements == kWithHolder) return std::nullopt;
  return ScriptReply{word};
}

lock::Snapshot snapshot_of(ScriptReply& parsed) {
  lock::Snapshot snapshot;
  snapshot.known = parsed.holder.has_value();
  snapshot.live_holders = parsed.holder ? 1 : 0;
  if (parsed.holder) snapshot.holders.push_back(std::move(*parsed.holder));
  return snapshot;
}

// When a waiter asks again: after `retry` (0: no limit), or sooner if the lease expires sooner.
Millis look_again(Millis retry, const lock::Holder& holder) {
  const Millis end = holder.left ? *holder.left + Millis(1) : Millis::max();
  return retry > Millis(0) ? std::min(retry, end) : end;
}

// Like redsync: waiters that collided once are spread, and none asks more than 20 times a second.
constexpr Millis kShortestRetry{50};
constexpr Millis kLongestRetry{250};

class Sleep : public lock::Reply<lock::Wake> {
 public:
  explicit Sleep(Millis slice) : slice_(slice) {}
  void wants(std::vector<pollfd>&) const override {}
  TimePoint due() const override { return until_.value_or(TimePoint::min()); }
  bool advance(TimePoint now) override {
    if (!until_) until_ = now + slice_;
    return now >= *until_;
  }
  Result<lock::Wake> take() override { return lock::Wake::slept; }

 private:
  Millis slice_;
  std::optional<TimePoint> until_;
};

using lock::Wake;

constexpr std::string_view kOwnerSuffix = ":1";

// The next message of a channel that the connection has subscribed to.
class NextMessage final : public Sleep {
 public:
  NextMessage(Connection& channel, Millis slice) : Sleep(slice), channel_(channel) {
    channel_.listen();
  }
  ~NextMessage() override {
    if (!done_) channel_.drop();
  }
  NextMessage(const NextMessage&) = delete;
  NextMessage& operator=(const NextMessage&) = delete;

  void wants(std::vector<pollfd>& out) const override { channel_.wants(out); }
  TimePoint due() const override { return std::min(Sleep::due(), channel_.due()); }

  bool advance(TimePoint now) override {
    if (!done_ && channel_.advance(now)) message_ = channel_.take();
    done_ = done_ || message_ || Sleep::advance(now);
    return done_;
  }

  Result<Wake> take() override {
    if (!message_) return Wake::slept;
    if (!*message_) return std::move(*message_).error();
    return Wake::woken;
  }

 private:
  Connection& channel_;
  std::optional<Result<ReplyPtr>> message_;
  bool done_ = false;
};

std::optional<Wake> decode_subscribed(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ARRAY ? std::optional(Wake::slept) : std::nullopt;
}

}  // namespace

ExternalStore::ExternalStore(std::unique_ptr<Link> link, FormatScripts scripts)
    : link_(std::move(link)), scripts_(scripts) {}

template <class T, class Read>
auto ExternalStore::decoder(Read read) const {
  return [this, read](const redisReply& reply) -> std::optional<T> {
    auto parsed = decode_script_reply(reply);
    if (!parsed) return std::nullopt;
    if (parsed->holder) parsed->holder->owner = decode_owner(std::move(parsed->holder->owner));
    return read(*parsed);
  };
}

template <class T, class Read>
lock::InFlight<T> ExternalStore::call(const lua::Script& script, const char* verb,
                                      const lock::LockName& name,
                                      const std::vector<std::string>& arguments, Read read) {
  note_release();
  const auto delivery = &script == &scripts_.release ? Delivery::last_words : Delivery::normal;
  return std::make_unique<Call<T>>(*link_, script_call(script, {name.text()}, arguments),
                                   action_on(verb, name), decoder<T>(read), &script, delivery);
}

lock::InFlight<lock::AcquireReply> ExternalStore::acquire(const lock::AcquireCall& call) {
  bool waits = call.queueing == lock::Queueing::wait;
  auto read = [waits, retry = retry_after()](ScriptReply& parsed) -> lock::AcquireReply {
    if (!parsed.holder) return lock::Granted{};
    if (!waits) return lock::Busy{std::move(parsed.holder)};
    lock::Queued queued;
    queued.position = 0;
    queued.look_again = look_again(retry, *parsed.holder);
    queued.obstacle = std::move(parsed.holder);
    return queued;
  };
  return this->call<lock::AcquireReply>(
      scripts_.acquire, "acquire", call.name,
      {encode_owner(call.owner), std::to_string(call.ttl.count())}, read);
}

lock::InFlight<lock::RenewReply> ExternalStore::renew(const lock::RenewCall& call) {
  bool outer = call.entry == lock::Entry::outer();
  auto read = [outer](ScriptReply& parsed) -> lock::RenewReply {
    if (parsed.holder) return lock::Lost{lock::LostHow::taken, std::move(parsed.holder), {}};
    if (parsed.word == "gone") return lock::Lost{lock::LostHow::gone, std::nullopt, {}};
    if (!outer) return lock::Upgrade{};
    return lock::Renewal::extended;
  };
  return this->call<lock::RenewReply>(scripts_.renew, "renew", call.name,
                                      {encode_owner(call.owner), std::to_string(call.ttl.count())},
                                      read);
}

lock::InFlight<lock::ReleaseReply> ExternalStore::release(const lock::ReleaseCall& call) {
  note_release();
  // If the reply to the first release was lost, nothing at the server shows that it succeeded.
  bool again = released_ == call.owner.text();
  auto read = [again](ScriptReply& parsed) -> lock::ReleaseReply {
    const bool ours = parsed.word == "freed" || (again && parsed.word == "gone");
    return {ours ? lock::OwnerEnd::released : lock::OwnerEnd::unknown, {}};
  };
  auto request = this->call<lock::ReleaseReply>(scripts_.release, "release", call.name,
                                                {encode_owner(call.owner)}, read);
  releasing_ = call.owner.text();
  return request;
}

// If the release did not reach a server, and the lease is gone at the next try, this owner did not
// release it.
void ExternalStore::note_release() {
  if (!releasing_) return;
  const bool may_have_arrived = released_ == *releasing_ || link_->may_have_arrived();
  released_ = may_have_arrived ? *std::move(releasing_) : "";
  releasing_.reset();
}

lock::InFlight<lock::CancelReply> ExternalStore::cancel(const lock::CancelCall& call) {
  auto read = [](ScriptReply& parsed) {
    return parsed.word == "freed" ? lock::CancelReply::was_granted : lock::CancelReply::not_found;
  };
  return this->call<lock::CancelReply>(scripts_.release, "cancel", call.name,
                                       {encode_owner(call.owner)}, read);
}

// A single server has one holder; over several servers each may have another one of the targets.
lock::InFlight<lock::ForceReply> ExternalStore::force_unlock(const lock::ForceCall& call) {
  auto read = [](ScriptReply& parsed) -> lock::ForceReply {
    if (parsed.word == "held") return lock::NoMatch{};
    if (!parsed.holder) return lock::NotHeld{};
    return lock::Forced{{std::move(*parsed.holder)}, {}, {}};
  };
  std::vector<std::string> owners;
  for (const lock::ForceTarget& target : call.targets) owners.push_back(encode_owner(target.owner));
  return this->call<lock::ForceReply>(scripts_.release, "force-unlock", call.name, owners, read);
}

lock::InFlight<lock::Snapshot> ExternalStore::inspect(const lock::InspectCall& call) {
  return this->call<lock::Snapshot>(scripts_.inspect, "inspect", call.name, {}, snapshot_of);
}

lock::InFlight<lock::Snapshots> ExternalStore::inspect_all(
    const std::vector<lock::InspectCall>& calls) {
  note_release();
  std::vector<CallItem> items;
  for (const lock::InspectCall& call : calls) {
    items.push_back(
        {script_call(scripts_.inspect, {call.name.text()}, {}), action_on("inspect", call.name)});
  }
  return std::make_unique<BatchCall<lock::Snapshot>>(*link_, std::move(items), &scripts_.inspect,
                                                     decoder<lock::Snapshot>(snapshot_of));
}

lock::InFlight<lock::HistoryRows> ExternalStore::history(const lock::LockName&, uint64_t) {
  return lock::ready<lock::HistoryRows>(
      Error{ErrorKind::usage, "locks of this format have no history"});
}

lock::InFlight<lock::NamesPage> ExternalStore::list_names(const std::string&) {
  return lock::ready<lock::NamesPage>(
      Error{ErrorKind::usage, "NAME is required: locks of this format cannot be listed"});
}

PlainStore::PlainStore(std::unique_ptr<Link> link)
    : ExternalStore(std::move(link), {lua::plain_acquire, lua::plain_renew, lua::plain_release,
                                      lua::plain_inspect}) {}

lock::InFlight<lock::Wake> PlainStore::wait_for_wake(const lock::LockName&, const lock::Owner&,
                                                     Millis slice) {
  return std::make_unique<Sleep>(slice);
}

Millis PlainStore::retry_after() {
  constexpr auto kSpread = static_cast<uint64_t>((kLongestRetry - kShortestRetry).count());
  return kShortestRetry + Millis(static_cast<Millis::rep>(random_.next() % (kSpread + 1)));
}

RedissonStore::RedissonStore(Server server)
    : ExternalStore(std::make_unique<Connection>(server),
                    {lua::redisson_acquire, lua::redisson_renew, lua::redisson_release,
                     lua::redisson_inspect}),
      channel_(std::move(server)) {}

namespace {

// Redisson adds braces unless the name has its own hash tag.
std::string redisson_channel(const std::string& name) {
  constexpr const char* kChannel = "redisson_lock__channel:";
  return name.find('{') != name.npos ? kChannel + name : kChannel + ("{" + name + "}");
}

}  // namespace

lock::InFlight<Wake> RedissonStore::wait_for_wake(const lock::LockName& name, const lock::Owner&,
                                                  Millis slice) {
  if (channel_.is_open()) return std::make_unique<NextMessage>(channel_, slice);
  std::vector<std::string> words{"SUBSCRIBE", redisson_channel(name.text())};
  return std::make_unique<Call<Wake>>(channel_, std::move(words), action_on("wait for", name),
                                      decode_subscribed);
}

std::string RedissonStore::encode_owner(const lock::Owner& owner) const {
  bool ours = static_cast<bool>(lock::Owner::parse(owner.text()));
  return ours ? owner.text() + std::string(kOwnerSuffix) : owner.text();
}

std::string RedissonStore::decode_owner(std::string owner) const {
  if (!owner.ends_with(kOwnerSuffix)) return owner;
  std::string id = owner.substr(0, owner.size() - kOwnerSuffix.size());
  return lock::Owner::parse(id) ? id : owner;
}

}  // namespace rlock::redis
