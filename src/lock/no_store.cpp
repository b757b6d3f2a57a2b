#include "lock/no_store.hpp"

namespace rlock::lock {
namespace {

template <class T>
class Ready final : public Reply<T> {
 public:
  explicit Ready(T value) : value_(std::move(value)) {}
  void wants(std::vector<pollfd>&) const override {}
  TimePoint due() const override { return TimePoint::min(); }
  bool advance(TimePoint) override { return true; }
  Result<T> take() override { return std::move(value_); }

 private:
  T value_;
};

class NeverReady final : public Reply<Wake> {
 public:
  void wants(std::vector<pollfd>&) const override {}
  TimePoint due() const override { return TimePoint::max(); }
  bool advance(TimePoint) override { return false; }
  Result<Wake> take() override { return Wake::slept; }
};

template <class T>
InFlight<T> ready(T value) {
  return std::make_unique<Ready<T>>(std::move(value));
}

}  // namespace

InFlight<AcquireReply> NoStore::acquire(const AcquireCall&) {
  return ready<AcquireReply>(Granted{});
}
InFlight<RenewReply> NoStore::renew(const RenewCall&) {
  return ready<RenewReply>(Renewal::extended);
}
InFlight<ReleaseReply> NoStore::release(const ReleaseCall&) {
  return ready(ReleaseReply{});
}
InFlight<CancelReply> NoStore::cancel(const CancelCall&) {
  return ready(CancelReply::was_granted);
}
InFlight<Wake> NoStore::wait_for_wake(const LockName&, const Owner&, Millis) {
  return std::make_unique<NeverReady>();
}

}  // namespace rlock::lock
