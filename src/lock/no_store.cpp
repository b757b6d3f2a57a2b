#include "lock/no_store.hpp"

namespace rlock::lock {
namespace {

template <class T>
class Said final : public Reply<T> {
 public:
  explicit Said(T value) : value_(std::move(value)) {}
  void wants(std::vector<pollfd>&) const override {}
  TimePoint due() const override { return TimePoint::min(); }
  bool advance(TimePoint) override { return true; }
  util::Result<T> take() override { return std::move(value_); }

 private:
  T value_;
};

class Never final : public Reply<Wake> {
 public:
  void wants(std::vector<pollfd>&) const override {}
  TimePoint due() const override { return TimePoint::max(); }
  bool advance(TimePoint) override { return false; }
  util::Result<Wake> take() override { return Wake::slept; }
};

template <class T>
InFlight<T> say(T value) {
  return std::make_unique<Said<T>>(std::move(value));
}

}  // namespace

InFlight<AcquireReply> NoStore::acquire(const AcquireCall&) {
  return say<AcquireReply>(Granted{});
}
InFlight<RenewReply> NoStore::renew(const RenewCall&) {
  return say<RenewReply>(Renewal::extended);
}
InFlight<ReleaseReply> NoStore::release(const ReleaseCall&) {
  return say(ReleaseReply{});
}
InFlight<CancelReply> NoStore::cancel(const CancelCall&) {
  return say(CancelReply::gave_back);
}
InFlight<ForceReply> NoStore::force_unlock(const ForceCall&) {
  return say<ForceReply>(NotHeld{});
}
InFlight<Snapshot> NoStore::inspect(const InspectCall&) {
  return say(Snapshot{});
}
InFlight<std::vector<Past>> NoStore::history(const LockName&, uint64_t) {
  return say(std::vector<Past>());
}
InFlight<NamesPage> NoStore::list_names(const std::string&) {
  return say(NamesPage{});
}
InFlight<Wake> NoStore::wait_for_wake(const LockName&, const Owner&, Millis) {
  return std::make_unique<Never>();
}

}  // namespace rlock::lock
