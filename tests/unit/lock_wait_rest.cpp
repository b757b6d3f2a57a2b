// Waiters far from the head, as the server's slice makes them.
#include <doctest/doctest.h>

#include <algorithm>

#include "lock/wait.hpp"
#include "support/scripted_store.hpp"

using namespace std::chrono_literals;
using namespace rlock;
using namespace rlock::lock;

namespace {

struct FarFromTheHead {
  test::FakePoller poller;
  test::ScriptedStore store{poller};
  util::SystemRandom random;
  WaitObserver watcher;
  WaitLoop loop{store, poller, random, watcher};

  void answers(AcquireReply reply) { store.acquires.push_back({0ms, std::move(reply)}); }
  void run() {
    answers(Granted{{1}});
    REQUIRE(loop.acquire({*LockName::parse("job"), Owner::fresh(random)}, {}));
  }
};

Queued queued(std::optional<Millis> slice) {
  Queued queued;
  queued.ticket = Ticket{7};
  queued.slice = slice;
  return queued;
}

// How long after the connection was cut, and after each of two further failures, it asks again.
std::vector<Millis> returns_after_a_cut(std::optional<Millis> slice) {
  FarFromTheHead bench;
  const Error cut{ErrorKind::unavailable, "reset", Retry::later};
  bench.answers(queued(slice));
  bench.store.wakes.push_back({0ms, cut});
  bench.store.acquires.push_back({0ms, cut});
  bench.store.acquires.push_back({0ms, cut});
  bench.run();
  std::vector<Millis> gaps;
  for (size_t i = 1; i < bench.store.asked_at.size(); ++i) {
    const auto gap = bench.store.asked_at[i] - bench.store.asked_at[i - 1];
    gaps.push_back(std::chrono::duration_cast<Millis>(gap));
  }
  return gaps;
}

}  // namespace

TEST_CASE("a waiter far from the head blocks for the slice that the server gives, within bounds") {
  FarFromTheHead bench;
  for (Millis slice : {20'000ms, 20'000ms, 20'000ms, 3'600'000ms, 1ms}) {
    bench.answers(queued(slice));
    bench.store.wakes.push_back({1ms, Wake::woken});
  }
  bench.run();
  const auto& slices = bench.store.slices;
  for (size_t i : {0U, 1U, 2U, 3U}) {
    CHECK(slices.at(i) >= 18s);
    CHECK(slices.at(i) <= 22s);
  }
  CHECK((slices.at(0) != slices.at(1) || slices.at(0) != slices.at(2)));
  CHECK(slices.at(4) >= 4500ms);
  CHECK(slices.at(4) <= 5500ms);
}

TEST_CASE("after a cut connection waiters at rest come back over a slice, the first ones at once") {
  Millis most{0};
  for (int i = 0; i < 200; ++i) {
    const auto near = returns_after_a_cut(std::nullopt);
    CHECK(near.at(0) <= 300ms);
    CHECK(near.at(1) + near.at(2) <= 200ms);
    const auto at_rest = returns_after_a_cut(20s);
    most = std::max(most, at_rest.at(0));
    CHECK(at_rest.at(0) <= 20s);
    CHECK(at_rest.at(1) >= 5s);
    CHECK(at_rest.at(2) >= 5s);
    // After a slice of up to 22 s, and after a failure on the way back: within its heartbeat.
    CHECK(22s + at_rest.at(0) + at_rest.at(1) < 60s);
  }
  CHECK(most > 10s);
}
