#include <doctest/doctest.h>

#include <utility>

#include "lock/wait.hpp"
#include "support/scripted_store.hpp"

using namespace std::chrono_literals;
using namespace rlock;
using namespace rlock::lock;

namespace {

struct FirstRequest final : WaitObserver {
  test::FakePoller poller;
  test::ScriptedStore store{poller};
  test::FixedRandom random;
  int awaited = 0;
  int refused = 0;

  void awaiting_reply() override { ++awaited; }
  void not_granted() override { ++refused; }

  void answers(AcquireReply reply) {
    store.acquires.push_back({1ms, Result<AcquireReply>(std::move(reply))});
  }
  void fails() {
    const Error error{ErrorKind::unavailable, "failed", Retry::later};
    store.acquires.push_back({1ms, Result<AcquireReply>(error)});
  }
  void wakes() { store.wakes.push_back({2s, Result<Wake>(Wake::woken)}); }
  Result<WaitResult> run() {
    WaitLoop loop(store, poller, random, *this);
    return loop.acquire({*LockName::parse("job"), Owner::fresh(random)}, {});
  }
};

}  // namespace

TEST_CASE("the first request alone is announced while it is on its way") {
  FirstRequest bench;
  SUBCASE("granted at once") {
    bench.answers(Granted{{42}});
    REQUIRE(bench.run());
    CHECK(bench.refused == 0);
  }
  SUBCASE("after a reply that asks to come again at once") {
    bench.answers(RetryNow{});
    bench.answers(Granted{{42}});
    REQUIRE(bench.run());
    CHECK(bench.refused == 0);
  }
  SUBCASE("after a wait") {
    bench.answers(Queued{Ticket{7}});
    bench.wakes();
    bench.answers(Granted{{42}});
    REQUIRE(bench.run());
    CHECK(bench.refused == 1);
  }
  SUBCASE("busy") {
    bench.answers(Busy{});
    REQUIRE(bench.run());
    CHECK(bench.refused == 1);
  }
  SUBCASE("an error, then a grant") {
    bench.fails();
    bench.answers(Granted{{42}});
    REQUIRE(bench.run());
    CHECK(bench.refused == 1);
  }
  SUBCASE("no answer") {
    REQUIRE(!bench.run());
    CHECK(bench.refused >= 1);
  }
  CHECK(bench.awaited == 1);
}

TEST_CASE("a refusal is cancelled if the first request may still arrive") {
  FirstRequest bench;
  bench.fails();
  bench.answers(Busy{std::nullopt, 4});
  bench.store.cancels.push_back({1ms, Result<CancelReply>(CancelReply::not_found)});
  auto result = bench.run();
  REQUIRE(result);
  CHECK(std::get<Busy>(*result).waiters == 4);
  CHECK(bench.store.cancelled == 1);
}
