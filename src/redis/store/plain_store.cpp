#include "redis/store/plain_store.hpp"

#include <cstdint>
#include <utility>

namespace rlock::redis {
namespace {

// As redsync: waiters that collided once are spread, and none looks more than 20 times a second.
constexpr Millis kShortestRetry{50};
constexpr Millis kLongestRetry{250};

class Sleep final : public lock::Reply<lock::Wake> {
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

}  // namespace

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

}  // namespace rlock::redis
