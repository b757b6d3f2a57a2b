#include "redis/store/redisson_store.hpp"

#include <algorithm>
#include <utility>

#include "redis/store/call.hpp"

namespace rlock::redis {
namespace {

using lock::Wake;

constexpr std::string_view kOwnerSuffix = ":1";

// The next message of a channel that the connection has subscribed to.
class NextMessage final : public lock::Reply<Wake> {
 public:
  NextMessage(Connection& channel, Millis slice) : channel_(channel), slice_(slice) {
    channel_.listen();
  }
  ~NextMessage() override {
    if (!done_) channel_.drop();
  }
  NextMessage(const NextMessage&) = delete;
  NextMessage& operator=(const NextMessage&) = delete;

  void wants(std::vector<pollfd>& out) const override { channel_.wants(out); }
  TimePoint due() const override {
    return until_ ? std::min(*until_, channel_.due()) : TimePoint::min();
  }

  bool advance(TimePoint now) override {
    if (!until_) until_ = now + slice_;
    if (done_) return true;
    if (channel_.advance(now)) {
      message_ = channel_.take();
      done_ = true;
    }
    done_ = done_ || now >= *until_;
    return done_;
  }

  Result<Wake> take() override {
    if (!message_) return Wake::slept;
    if (!*message_) return std::move(*message_).error();
    return Wake::woken;
  }

 private:
  Connection& channel_;
  Millis slice_;
  std::optional<TimePoint> until_;
  std::optional<Result<ReplyPtr>> message_;
  bool done_ = false;
};

std::optional<Wake> decode_subscribed(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ARRAY ? std::optional(Wake::slept) : std::nullopt;
}

}  // namespace

RedissonStore::RedissonStore(Server server)
    : ExternalStore(std::make_unique<Connection>(server),
                    {lua::redisson_acquire, lua::redisson_renew, lua::redisson_release,
                     lua::redisson_inspect}),
      channel_(std::move(server)) {}

lock::InFlight<Wake> RedissonStore::wait_for_wake(const lock::LockName& name, const lock::Owner&,
                                                  Millis slice) {
  if (channel_.is_open()) return std::make_unique<NextMessage>(channel_, slice);
  std::vector<std::string> words{"SUBSCRIBE", "redisson_lock__channel:{" + name.text() + "}"};
  return std::make_unique<Call<Wake>>(channel_, std::move(words), action_on("wait for", name),
                                      without_context<Wake, decode_subscribed>, "", nullptr);
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
