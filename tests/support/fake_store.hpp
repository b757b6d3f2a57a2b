#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lock/inspector.hpp"
#include "support/scripted_store.hpp"

// A store in real time that answers as a test scripts it, without a server.
namespace rlock::test {

using lock::InFlight;

template <class T>
InFlight<T> answer(Result<T> value, Millis after = Millis(0)) {
  return std::make_unique<ScriptedReply<T>>(BootClock::now() + after, std::move(value));
}
template <class T>
InFlight<T> silence() {
  return std::make_unique<ScriptedReply<T>>(TimePoint::max(), std::nullopt);
}

// Each call is a function the test sets; `trace` gets every call first.
class FakeStore final : public lock::LockStore {
 public:
  struct Script {
    std::function<InFlight<lock::AcquireReply>()> acquire;
    std::function<InFlight<lock::RenewReply>()> renew;
    std::function<InFlight<lock::ReleaseReply>(const lock::ReleaseCall&)> release;
    std::function<InFlight<lock::Wake>(Millis slice)> wake;
    std::function<void(const char* call)> trace;
    lock::GrantReach reach = lock::GrantReach::everywhere;
  };
  explicit FakeStore(const Script& script) : script_(script) {}

  InFlight<lock::AcquireReply> acquire(const lock::AcquireCall&) override {
    script_.trace("acquire");
    return script_.acquire();
  }
  InFlight<lock::RenewReply> renew(const lock::RenewCall&) override {
    script_.trace("renew");
    return script_.renew();
  }
  InFlight<lock::ReleaseReply> release(const lock::ReleaseCall& call) override {
    script_.trace("release");
    return script_.release(call);
  }
  InFlight<lock::CancelReply> cancel(const lock::CancelCall&) override {
    script_.trace("cancel");
    return answer<lock::CancelReply>(lock::CancelReply::was_queued);
  }
  InFlight<lock::Wake> wait_for_wake(const lock::LockName&, const lock::Owner&,
                                     Millis slice) override {
    script_.trace("listen");
    return script_.wake(slice);
  }
  InFlight<lock::GrantReach> complete_grant() override {
    return answer<lock::GrantReach>(script_.reach);
  }
  std::string server() const override { return "fake:6379"; }

 private:
  const Script& script_;
};

// Knows nothing of any lock.
class FakeInspector final : public lock::LockInspector {
 public:
  InFlight<lock::ForceReply> force_unlock(const lock::ForceCall&) override { return nullptr; }
  InFlight<lock::Snapshot> inspect(const lock::InspectCall&) override {
    return answer<lock::Snapshot>(lock::Snapshot{});
  }
  InFlight<std::vector<Result<lock::Snapshot>>> inspect_all(
      const std::vector<lock::InspectCall>&) override {
    return nullptr;
  }
  InFlight<std::vector<lock::HistoryRow>> history(const lock::LockName&, uint64_t) override {
    return nullptr;
  }
  InFlight<lock::NamesPage> list_names(const std::string&) override { return nullptr; }
  std::string server() const override { return "fake:6379"; }
};

}  // namespace rlock::test
