// Requests to several servers, step by step: scripted servers, and a clock that moves as far as the
// request says that it is due.
#include <doctest/doctest.h>

#include "lock/quorum_acquire.hpp"
#include "lock/quorum_ears.hpp"
#include "lock/redlock_acquire.hpp"
#include "support/scripted_store.hpp"

namespace rlock::lock {
namespace {

using namespace std::chrono_literals;
using test::ScriptedStore;
using util::Result;

struct Fixed final : util::Random {
  uint64_t next() override { return 500; }
};

struct Trio {
  test::FakePoller poller;
  Fixed random;
  Electorate electorate{{"a:1", "b:1", "c:1"}};
  std::vector<Member> members;
  std::vector<ScriptedStore*> stores;
  TimePoint start = poller.now();
  LockName name = *LockName::parse("job");
  Owner owner = Owner::fresh(random);

  Trio() {
    for (size_t i = 0; i < electorate.size(); ++i) {
      auto store = std::make_unique<ScriptedStore>(poller);
      stores.push_back(store.get());
      members.push_back({std::move(store)});
    }
  }

  std::vector<MakeStore> makers() {
    std::vector<MakeStore> makers;
    for (Member& member : members) {
      makers.push_back([&member] { return std::move(member.store); });
    }
    return makers;
  }

  // To its end. A request that is due in the past makes whoever drives it spin.
  Millis drive(Request& request) {
    while (!request.advance(poller.now())) {
      REQUIRE(request.due() > poller.now());
      REQUIRE(request.due() < start + 1h);
      poller.pause(request.due(), Heed::nothing);
    }
    return std::chrono::duration_cast<Millis>(poller.now() - start);
  }
};

}  // namespace

TEST_CASE("a wait that ends at the servers in mid-wait is followed by another (L11, L29)") {
  Trio trio;
  for (ScriptedStore* store : trio.stores) {
    store->wakes.push_back({1s, Result<Wake>(Wake::slept)});
    store->wakes.push_back({500ms, Result<Wake>(Wake::woken)});
  }
  const auto makers = trio.makers();
  Ears ears(makers, trio.electorate);
  auto listening = ears.listen(trio.name, trio.owner, 4s);
  CHECK(trio.drive(*listening) == 1500ms);
  auto wake = listening->take();
  REQUIRE(wake);
  CHECK(*wake == Wake::woken);
}

TEST_CASE("a try of Redlock that pauses beside a server that hangs sleeps meanwhile") {
  Trio trio;
  Holder rival;
  rival.owner = "other";
  trio.stores[0]->acquires.push_back({1ms, Result<AcquireReply>(Busy{rival, 0})});
  trio.stores[1]->acquires.push_back({1ms, Result<AcquireReply>(Granted{})});
  for (size_t i : {0, 1}) {
    trio.stores[i]->cancels.push_back({1ms, Result<CancelReply>(CancelReply::gave_back)});
  }
  AcquireCall call{trio.name, trio.owner};
  call.queueing = Queueing::never;
  uint64_t splits = kMostSplits - 1;
  RedlockAcquire one(trio.members, trio.electorate, trio.random, {call, splits});
  CHECK(trio.drive(one) > kGiveBack);
  auto reply = one.take();
  REQUIRE(reply);
  CHECK(std::holds_alternative<More>(*reply));
  CHECK(splits == kMostSplits);
}

TEST_CASE("a majority that comes when the lease is over is no grant") {
  Trio trio;
  AcquireCall call{trio.name, trio.owner};
  call.queueing = Queueing::never;
  call.ttl = 40ms;
  call.attempt = 1;
  uint64_t splits = 0;
  const Millis late{45}, soon{1};
  for (Millis last : {Millis(20), late}) {
    CAPTURE(last.count());
    // What a native grant needs last is the confirmation of its token.
    for (bool native : {false, true}) {
      CAPTURE(native);
      for (ScriptedStore* store : trio.stores) {
        store->acquires = {{native ? soon : last, Result<AcquireReply>(Granted{})}};
        store->renews = {{last, Result<RenewReply>(Renewal{})}};
        store->cancels = {{soon, Result<CancelReply>(CancelReply::gave_back)}};
      }
      trio.start = trio.poller.now();
      std::unique_ptr<QuorumTry> one;
      if (native) {
        one = std::make_unique<QuorumAcquire>(trio.members, trio.electorate, trio.random,
                                              QuorumTry::Try{call, splits});
      } else {
        one = std::make_unique<RedlockAcquire>(trio.members, trio.electorate, trio.random,
                                               QuorumTry::Try{call, splits});
      }
      trio.drive(*one);
      auto reply = one->take();
      REQUIRE(reply);
      CHECK(std::holds_alternative<Granted>(*reply) == (last < late));
    }
  }
}

}  // namespace rlock::lock
