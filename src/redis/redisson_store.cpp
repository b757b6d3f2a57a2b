#include "redis/redisson_store.hpp"

#include <utility>

#include "redis/call.hpp"

namespace rlock::redis {
namespace {

using lock::Millis;
using lock::Wake;

constexpr std::string_view kThread = ":1";

// The next message of a channel that the connection has subscribed to.
class NextMessage final : public lock::Reply<Wake> {
 public:
  NextMessage(Connection& channel, Millis slice) : channel_(channel), slice_(slice) {
    channel_.listen();
  }
  ~NextMessage() override {
    if (!over_) channel_.drop();
  }
  NextMessage(const NextMessage&) = delete;
  NextMessage& operator=(const NextMessage&) = delete;

  void wants(std::vector<pollfd>& out) const override { channel_.wants(out); }
  util::TimePoint due() const override {
    return until_ ? std::min(*until_, channel_.due()) : util::TimePoint::min();
  }

  bool advance(util::TimePoint now) override {
    if (!until_) until_ = now + slice_;
    if (over_) return true;
    if (channel_.advance(now)) {
      message_ = channel_.take();
      over_ = true;
    }
    over_ = over_ || now >= *until_;
    return over_;
  }

  util::Result<Wake> take() override {
    if (!message_) return Wake::slept;
    if (!*message_) return std::move(*message_).error();
    return Wake::woken;
  }

 private:
  Connection& channel_;
  Millis slice_;
  std::optional<util::TimePoint> until_;
  std::optional<util::Result<ReplyPtr>> message_;
  bool over_ = false;
};

std::optional<Wake> decode_subscribed(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ARRAY ? std::optional(Wake::slept) : std::nullopt;
}

}  // namespace

RedissonStore::RedissonStore(Server server)
    : ForeignStore(std::make_unique<Connection>(server),
                   {lua::redisson_acquire, lua::redisson_renew, lua::redisson_release,
                    lua::redisson_inspect}),
      channel_(std::move(server)) {}

lock::InFlight<Wake> RedissonStore::wait_for_wake(const lock::LockName& name, const lock::Owner&,
                                                  Millis slice) {
  if (channel_.is_open()) return std::make_unique<NextMessage>(channel_, slice);
  std::vector<std::string> words{"SUBSCRIBE", "redisson_lock__channel:{" + name.text() + "}"};
  return std::make_unique<Call<Wake>>(channel_, std::move(words), about("wait for", name),
                                      without_context<Wake, decode_subscribed>, "", nullptr);
}

std::string RedissonStore::stored(const lock::Owner& owner) const {
  bool ours = static_cast<bool>(lock::Owner::parse(owner.text()));
  return ours ? owner.text() + std::string(kThread) : owner.text();
}

std::string RedissonStore::shown(std::string owner) const {
  if (!owner.ends_with(kThread)) return owner;
  std::string id = owner.substr(0, owner.size() - kThread.size());
  return lock::Owner::parse(id) ? id : owner;
}

}  // namespace rlock::redis
