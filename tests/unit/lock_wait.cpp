#include "lock/wait.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "support/scripted_store.hpp"

using namespace std::chrono_literals;
using namespace rlock;
using namespace rlock::lock;

namespace {

struct Watcher final : WaitObserver {
  int queued_seen = 0;
  int transient_errors = 0;
  int ticks = 0;
  int polls = 0;
  int awaited = 0;
  int refused = 0;
  Millis every{0};
  std::function<void()> when_queued = [] {};
  void queued(const Queued&) override {
    ++queued_seen;
    when_queued();
  }
  void transient_error(const Error&) override { ++transient_errors; }
  Millis tick_every() const override { return every; }
  void must_poll(const Error&) override { ++polls; }
  void tick() override { ++ticks; }
  void awaiting_reply() override { ++awaited; }
  void not_granted() override { ++refused; }
};

struct Bench {
  test::FakePoller poller;
  test::ScriptedStore store{poller};
  test::FixedRandom random;
  util::SystemRandom system_random;
  Watcher watcher;
  WaitLoop loop{store, poller, random, watcher};
  WaitLoop random_loop{store, poller, system_random, watcher};
  TimePoint start = poller.now();

  void answers(AcquireReply reply, Millis delay = 1ms) {
    auto& step = store.acquires.emplace_back();
    step.delay = delay;
    step.answer.emplace(std::move(reply));
  }
  void fails(ErrorKind kind, Retry retry) {
    store.acquires.push_back({1ms, Result<AcquireReply>(Error{kind, "failed", retry})});
  }
  void wakes_after(Millis delay) { store.wakes.push_back({delay, Result<Wake>(Wake::woken)}); }
  void replies_to_cancel(CancelReply reply) {
    store.cancels.push_back({1ms, Result<CancelReply>(reply)});
  }
  Result<WaitResult> run(WaitLimits limits = {}) {
    return loop.acquire({*LockName::parse("job"), Owner::fresh(random)}, limits);
  }
  Result<WaitResult> run_at_random_times(WaitLimits limits = {}) {
    return random_loop.acquire({*LockName::parse("job"), Owner::fresh(random)}, limits);
  }
  WaitLimits within(Millis wait) const {
    WaitLimits limits;
    limits.deadline = start + wait;
    return limits;
  }
};

Queued place(uint64_t position, std::optional<Millis> look_again = std::nullopt) {
  return {Ticket{7}, position, look_again, std::nullopt};
}

}  // namespace

TEST_CASE("each request says how long ago the first one was sent") {
  Bench bench;
  bench.answers(place(3), 1000ms);
  bench.wakes_after(2s);
  bench.answers(Granted{{42}, {}, 5}, 10ms);
  auto result = bench.run();
  REQUIRE(result);
  CHECK(bench.store.asked.at(0).asked == 0ms);
  CHECK(bench.store.asked.at(1).asked == 3000ms);
  CHECK(std::get<HeldLock>(*result).asked_at == bench.start);
  CHECK(std::get<HeldLock>(*result).slot == 5);
}

TEST_CASE("a waiter blocks at the server, sends its ticket and is granted the lock") {
  Bench bench;
  bench.answers(place(3));
  bench.wakes_after(2s);
  bench.answers(Granted{{42}});
  auto result = bench.run();
  REQUIRE(result);
  CHECK(std::holds_alternative<HeldLock>(*result));
  CHECK(bench.store.slices == std::vector<Millis>{5000ms});
  CHECK(bench.store.asked.at(1).ticket == Ticket{7});
  CHECK(bench.watcher.queued_seen == 1);
}

TEST_CASE(
    "the first waiter asks again when the lease may have ended, and never blocks without limit") {
  Bench bench;
  bench.answers(place(1, 120ms));
  bench.wakes_after(120ms);
  bench.answers(place(1, 0ms));
  bench.wakes_after(1ms);
  bench.answers(Granted{{1}});
  REQUIRE(bench.run());
  CHECK(bench.store.slices == std::vector<Millis>{120ms, 1ms});
}

TEST_CASE("while a waiter learns its position its store is free for another request") {
  Bench bench;
  bench.answers(place(3));
  bench.wakes_after(2s);
  bench.answers(Granted{{42}});
  bench.store.snapshots.push_back({1ms, Result<Snapshot>(Snapshot{})});
  std::optional<Result<Snapshot>> seen;
  bench.watcher.when_queued = [&] {
    seen = finish(bench.poller, bench.store.inspect({*LockName::parse("job")}), TimePoint::max(),
                  "script");
  };
  CHECK(bench.run());
  CHECK((seen && *seen));
}

TEST_CASE("the holder that a wait ran out for is as old as it is then") {
  Bench bench;
  Queued queued = place(1);
  queued.obstacle = Holder{.since = {1}, .held = 2s, .left = 600ms};
  bench.answers(queued, 0ms);
  bench.replies_to_cancel(CancelReply::was_queued);
  auto result = bench.run(bench.within(1s));
  REQUIRE(result);
  const auto& late = std::get<TimedOut>(*result);
  REQUIRE(holder_in(late.obstacle) != nullptr);
  CHECK(holder_in(late.obstacle)->held == 3s);
  CHECK(holder_in(late.obstacle)->left == 0ms);
}

TEST_CASE("a wait for a lock that was closed ends with what keeps it from the lock then") {
  Bench bench;
  Queued queued = place(1);
  queued.obstacle = Closure{.id = "closure", .left = 10s};
  bench.answers(queued, 0ms);
  bench.store.wakes.push_back({2800ms, Wake::slept});
  queued.obstacle = Holder{.owner = "holder"};
  bench.answers(queued, 0ms);
  bench.replies_to_cancel(CancelReply::was_queued);
  auto result = bench.run(bench.within(3s));
  REQUIRE(result);
  CHECK(holder_in(std::get<TimedOut>(*result).obstacle) != nullptr);
  CHECK(bench.store.slices.at(0) == 2800ms);
}

TEST_CASE("a lock granted just after the deadline is released") {
  Bench bench;
  bench.answers(place(1));
  bench.replies_to_cancel(CancelReply::was_granted);
  auto result = bench.run(bench.within(1s));
  REQUIRE(result);
  CHECK(std::holds_alternative<TimedOut>(*result));
  CHECK(bench.store.cancelled == 1);
}

TEST_CASE("a cancel that gets lost is sent again") {
  Bench bench;
  bench.answers(place(1));
  bench.store.cancels.push_back(
      {1ms, Result<CancelReply>(Error{ErrorKind::unavailable, "reset", Retry::later})});
  SUBCASE("at the end of the wait") {
    bench.replies_to_cancel(CancelReply::was_queued);
    REQUIRE(bench.run(bench.within(1s)));
    CHECK(bench.store.cancelled == 2);
  }
  SUBCASE("before it, even to a server that has been silent") {
    bench.wakes_after(1ms);
    bench.fails(ErrorKind::denied, Retry::never);
    bench.store.cancels.push_back({});
    bench.replies_to_cancel(CancelReply::was_queued);
    REQUIRE_FALSE(bench.run(bench.within(60s)));
    CHECK(bench.store.cancelled == 3);
  }
}

TEST_CASE("a cancel that gets lost is sent again, also after an interrupt before the reply") {
  Bench bench;
  bench.store.acquires.push_back({});
  bench.poller.interrupt_at(bench.start + 50ms);
  bench.store.cancels.push_back(
      {1ms, Result<CancelReply>(Error{ErrorKind::unavailable, "reset", Retry::later})});
  bench.replies_to_cancel(CancelReply::was_queued);
  auto result = bench.run();
  REQUIRE(result);
  CHECK(std::holds_alternative<Interrupted>(*result));
  CHECK(bench.store.cancelled == 2);
  CHECK(bench.watcher.transient_errors == 0);
}

TEST_CASE("a cancel whose connection has gone silent leaves time for a fresh one") {
  Bench bench;
  bench.store.acquires.push_back({});
  bench.poller.interrupt_at(bench.start + 50ms);
  bench.store.cancels.push_back({});
  bench.replies_to_cancel(CancelReply::was_queued);
  REQUIRE(bench.run());
  CHECK(bench.store.cancelled == 2);
  CHECK(bench.poller.now() - bench.start < 50ms + timing::kShortCancelTime);
}

TEST_CASE("a waiter that was removed before its claim confirms that") {
  Bench bench;
  bench.answers(OwnerEnded{OwnerEnd::forced, "by whom"});
  bench.replies_to_cancel(CancelReply::not_found);
  auto result = bench.run();
  REQUIRE(result);
  CHECK(refusal_in<OwnerEnded>(*result)->note == "by whom");
  CHECK(bench.store.cancelled == 1);
}

TEST_CASE("a server that is starting is asked again within the first contact's time") {
  Bench bench;
  bench.fails(ErrorKind::unavailable, Retry::later);
  bench.fails(ErrorKind::unavailable, Retry::later);
  bench.answers(Granted{{1}});
  auto result = bench.run();
  REQUIRE(result);
  CHECK(std::holds_alternative<HeldLock>(*result));
}

TEST_CASE("a permanent error ends the acquisition, and what it took is released") {
  for (ErrorKind kind : {ErrorKind::denied, ErrorKind::wrong_type, ErrorKind::unavailable}) {
    Bench bench;
    bench.fails(kind, Retry::never);
    bench.replies_to_cancel(CancelReply::not_found);
    auto result = bench.run();
    REQUIRE_FALSE(result);
    CHECK(result.error().kind == kind);
    CHECK(bench.store.cancelled == 1);
    CHECK(bench.poller.now() - bench.start < 100ms);
  }
}

TEST_CASE(
    "a server that answered once counts as answering, even if it is unreachable at the end "
    "(--fail-open)") {
  const Error gone{ErrorKind::unavailable, "connection refused", Retry::later};
  auto outcome = [&](Result<AcquireReply> first) {
    Bench bench;
    bench.store.acquires.push_back({1ms, std::move(first)});
    for (int i = 0; i < 100; ++i) bench.store.acquires.push_back({1ms, gone});
    auto result = bench.run(bench.within(1s));
    REQUIRE_FALSE(result);
    CHECK(result.error().text == gone.text);
    return result.error().answered;
  };
  CHECK(outcome(gone) == Answered::no);
  CHECK(outcome(Error{ErrorKind::unavailable, "LOADING", Retry::later, Answered::yes}) ==
        Answered::yes);
  CHECK(outcome(AcquireReply(RetryNow{})) == Answered::yes);
}

TEST_CASE(
    "a repeated request that is granted counts as unconfirmed if replicas have to confirm it") {
  Bench bench;
  AcquireCall call{*LockName::parse("job"), Owner::fresh(bench.random)};
  call.replicas = 1;
  bench.fails(ErrorKind::unavailable, Retry::later);
  bench.answers(Granted{{1}});
  auto repeated = bench.loop.acquire(call, {});
  REQUIRE(repeated);
  CHECK(std::get<HeldLock>(*repeated).unconfirmed);
  bench.answers(Granted{{2}});
  auto first = bench.loop.acquire(call, {});
  REQUIRE(first);
  CHECK_FALSE(std::get<HeldLock>(*first).unconfirmed);
}

const Error kFailover{ErrorKind::unavailable, "a failover is in progress", Retry::later};

// Over Sentinel: a grant, and whether a failover is under way then.
void grants(Bench& bench, const Result<Done>& outlasts) {
  bench.answers(Granted{{1}});
  bench.store.failover_checks.push_back({1ms, outlasts});
}

TEST_CASE(
    "a grant during a failover does not count, and the same owner asks again, from its position") {
  Bench bench;
  bench.answers(place(3));
  bench.wakes_after(2s);
  // Longer than a server that is lost is retried.
  const int rounds = 1000;
  for (int i = 0; i < rounds; ++i) grants(bench, kFailover);
  bench.answers(place(5));  // at the new master
  bench.wakes_after(2s);
  grants(bench, Done{});
  auto result = bench.run();
  REQUIRE(result);
  CHECK(std::holds_alternative<HeldLock>(*result));
  const auto& asked = bench.store.asked;
  REQUIRE(asked.size() == rounds + 3);
  for (const AcquireCall& call : asked) CHECK(call.owner == asked.front().owner);
  CHECK(asked.back().ticket == Ticket{7});
  CHECK(bench.poller.now() - bench.start >= 60s);
  // Nobody else may run in a new lease of it: what counts is the last request.
  CHECK(std::get<HeldLock>(*result).granted_at == bench.store.asked_at.back());
  CHECK(bench.store.cancelled == 0);
}

TEST_CASE("a check for a failover takes at most 1.5 s, or a sixth of the ttl") {
  for (const auto& [ttl, most] : {std::pair(1s, 166ms), std::pair(60s, 1500ms)}) {
    Bench bench;
    grants(bench, Done{});
    AcquireCall call{*LockName::parse("job"), Owner::fresh(bench.random)};
    call.ttl = ttl;
    REQUIRE(bench.loop.acquire(call, {}));
    CHECK(bench.store.patiences == std::vector<Millis>{most});
  }
}

TEST_CASE("a failover that outlasts the wait ends it, and what was granted is cancelled") {
  Bench bench;
  AcquireCall call{*LockName::parse("job"), Owner::fresh(bench.random)};
  WaitLimits limits = bench.within(5s);
  Millis most = 5s;
  SUBCASE("with -w") {}
  SUBCASE("without a wait it has the time for the first answer of a server") {
    call.queueing = Queueing::never;
    limits = {};
    most = limits.reach;
  }
  for (int i = 0; i < 100; ++i) grants(bench, kFailover);
  bench.replies_to_cancel(CancelReply::was_granted);
  auto result = bench.loop.acquire(call, limits);
  REQUIRE_FALSE(result);
  CHECK(result.error().kind == ErrorKind::unavailable);
  CHECK(result.error().answered == Answered::yes);
  CHECK(result.error().text.find("granted, but a failover") != std::string::npos);
  CHECK(bench.poller.now() - bench.start >= most);
  CHECK(bench.poller.now() - bench.start < most + 1s);
  CHECK(bench.store.cancelled == 1);
}

TEST_CASE(
    "without a wait rlock waits for a failover that ends in time, even if the master is gone") {
  Bench bench;
  AcquireCall call{*LockName::parse("job"), Owner::fresh(bench.random)};
  call.queueing = Queueing::never;
  grants(bench, kFailover);
  for (int i = 0; i < 3; ++i) bench.fails(ErrorKind::unavailable, Retry::later);
  SUBCASE("granted") {
    grants(bench, Done{});
    auto result = bench.loop.acquire(call, {});
    REQUIRE(result);
    CHECK(std::holds_alternative<HeldLock>(*result));
  }
  SUBCASE("busy: what the old master granted is cancelled") {
    bench.answers(Busy{});
    bench.replies_to_cancel(CancelReply::not_found);
    auto result = bench.loop.acquire(call, {});
    REQUIRE(result);
    CHECK(refusal_in<Busy>(*result));
    CHECK(bench.store.cancelled == 1);
  }
}

TEST_CASE("sentinels that refuse to say whether a failover is under way end the acquisition") {
  Bench bench;
  grants(bench, Error{ErrorKind::denied, "NOPERM", Retry::later});
  bench.replies_to_cancel(CancelReply::was_granted);
  auto result = bench.run();
  REQUIRE_FALSE(result);
  CHECK(result.error().kind == ErrorKind::denied);
  CHECK(bench.store.cancelled == 1);
}

TEST_CASE("an interrupt during a failover cancels the grant") {
  Bench bench;
  for (int i = 0; i < 100; ++i) grants(bench, kFailover);
  bench.poller.interrupt_at(bench.start + 1s);
  bench.replies_to_cancel(CancelReply::was_granted);
  auto result = bench.run();
  REQUIRE(result);
  CHECK(std::holds_alternative<Interrupted>(*result));
  CHECK(bench.store.cancelled == 1);
}

TEST_CASE("an interrupt while rlock asks about a failover is no silence of a server") {
  Bench bench;
  AcquireCall call{*LockName::parse("job"), Owner::fresh(bench.random)};
  call.queueing = Queueing::never;
  bench.answers(Granted{{1}}, 2s);
  bench.store.failover_checks.emplace_back();  // no answer
  bench.poller.interrupt_at(bench.start + 2500ms);
  bench.replies_to_cancel(CancelReply::was_granted);
  auto result = bench.loop.acquire(call, {});
  REQUIRE(result);
  CHECK(std::holds_alternative<Interrupted>(*result));
  CHECK(bench.watcher.transient_errors == 0);
  CHECK(bench.store.cancelled == 1);
}

TEST_CASE("a waiter that may not block polls rarely, but in time for a grant") {
  Bench bench;
  Result<Wake> wake = Wake::woken;
  SUBCASE("refused") {
    wake = Error{ErrorKind::unavailable, "unknown command", Retry::never};
  }
  SUBCASE("cut off") {
    wake = Error{ErrorKind::unavailable, "the server closed the connection", Retry::later};
  }
  SUBCASE("woken without need") {}
  for (int i = 0; i < 10'000; ++i) {
    bench.answers(place(2));
    bench.store.wakes.push_back({1ms, wake});
  }
  bench.replies_to_cancel(CancelReply::was_queued);
  constexpr int kSeconds = 300;
  auto result = bench.run_at_random_times(bench.within(std::chrono::seconds(kSeconds)));
  REQUIRE(result);
  CHECK(std::holds_alternative<TimedOut>(*result));
  CHECK(bench.poller.now() - bench.start < std::chrono::seconds(kSeconds + 1));
  // Each time it asks, waits and, cut off, connects anew: three commands.
  CHECK(bench.store.asked.size() * 3 < kSeconds * 5);
  // A grant is to be claimed within two seconds.
  CHECK(bench.store.asked.size() > kSeconds / 1.5);
  CHECK(bench.watcher.polls == (wake ? 0 : 1));
}

TEST_CASE("a blocking wait that fails now and then is not reported") {
  Bench bench;
  const Error cut{ErrorKind::unavailable, "reset", Retry::later};
  for (int i = 0; i < 20; ++i) {
    bench.answers(place(2));
    bench.store.wakes.push_back({3s, cut});
  }
  bench.answers(Granted{{1}});
  REQUIRE(bench.run());
  CHECK(bench.poller.now() - bench.start < 20 * 3400ms);
  CHECK(bench.watcher.polls == 0);
}

TEST_CASE("without -w a lost server is retried for a minute") {
  Bench bench;
  bench.answers(place(2));
  auto result = bench.run();
  REQUIRE_FALSE(result);
  CHECK(result.error().kind == ErrorKind::unavailable);
  CHECK(bench.poller.now() - bench.start >= 60s);
  CHECK(bench.poller.now() - bench.start < 75s);
}

TEST_CASE("a waiter waits for a failover that began before its first request") {
  const Error replica{ErrorKind::unavailable, "it is a replica", Retry::later, Answered::no,
                      Cause::failover};
  Bench bench;
  for (int i = 0; i < 40; ++i) bench.store.acquires.push_back({100ms, replica});
  bench.answers(Granted{{1}});
  auto result = bench.run();
  REQUIRE(result);
  CHECK(std::holds_alternative<HeldLock>(*result));
  CHECK(bench.poller.now() - bench.start > 4s);
}

TEST_CASE("with -w a lost server is retried until the wait ends") {
  Bench bench;
  bench.answers(place(2));
  bench.wakes_after(1ms);
  auto result = bench.run(bench.within(200s));
  REQUIRE_FALSE(result);
  CHECK(bench.poller.now() - bench.start >= 200s);
  CHECK(bench.poller.now() - bench.start < 210s);
}

TEST_CASE("if the server has more to sweep, the request is repeated immediately") {
  Bench bench;
  for (int i = 0; i < 40; ++i) bench.answers(RetryNow{});
  bench.answers(Granted{{1}});
  REQUIRE(bench.run());
  CHECK(bench.poller.now() - bench.start < 100ms);
  CHECK(bench.store.slices.empty());
}

TEST_CASE("the waiting line is updated while the waiter blocks") {
  Bench bench;
  bench.watcher.every = 1s;
  bench.answers(place(2));
  bench.wakes_after(4500ms);
  bench.answers(Granted{{1}});
  REQUIRE(bench.run());
  CHECK(bench.watcher.ticks == 4);
}

TEST_CASE("waiters ask again at random times, not all at the same time") {
  Bench bench;
  for (int i = 0; i < 50; ++i) {
    bench.answers(place(9));
    bench.wakes_after(1ms);
  }
  bench.answers(Granted{{1}});
  REQUIRE(bench.run_at_random_times());
  auto [least, most] = std::minmax_element(bench.store.slices.begin(), bench.store.slices.end());
  CHECK(*least >= 4500ms);
  CHECK(*most <= 5500ms);
  CHECK(*least != *most);
}

TEST_CASE("only the first request is announced while it is on its way") {
  struct {
    std::vector<AcquireReply> replies;
    int refused;
  } const rows[] = {{{Granted{{42}}}, 0},
                    {{RetryNow{}, Granted{{42}}}, 0},
                    {{place(1), Granted{{42}}}, 1},
                    {{Busy{}}, 1}};
  for (const auto& row : rows) {
    Bench bench;
    for (const AcquireReply& reply : row.replies) bench.answers(reply);
    bench.wakes_after(2s);
    REQUIRE(bench.run());
    CHECK(bench.watcher.refused == row.refused);
    CHECK(bench.watcher.awaited == 1);
  }
  Bench failing;
  failing.fails(ErrorKind::unavailable, Retry::later);
  failing.answers(Granted{{42}});
  REQUIRE(failing.run());
  CHECK(failing.watcher.refused == 1);
  CHECK(failing.watcher.awaited == 1);
  Bench silent;
  REQUIRE(!silent.run());
  CHECK(silent.watcher.refused >= 1);
  CHECK(silent.watcher.awaited == 1);
}

TEST_CASE("a refusal is cancelled if the first request may still arrive") {
  Bench bench;
  bench.fails(ErrorKind::unavailable, Retry::later);
  bench.answers(Busy{std::nullopt, 4});
  bench.replies_to_cancel(CancelReply::not_found);
  auto result = bench.run();
  REQUIRE(result);
  CHECK(refusal_in<Busy>(*result)->waiters == 4);
  CHECK(bench.store.cancelled == 1);
}

// ---- waiters far from the head, as the server's slice makes them ----

Queued idle_queued(std::optional<Millis> slice) {
  Queued queued = place(9);
  queued.slice = slice;
  return queued;
}

// How long after the connection was cut, and after each of two further failures, it asks again.
std::vector<Millis> returns_after_a_cut(std::optional<Millis> slice) {
  Bench bench;
  const Error cut{ErrorKind::unavailable, "reset", Retry::later};
  bench.answers(idle_queued(slice), 0ms);
  bench.store.wakes.push_back({0ms, cut});
  bench.store.acquires.push_back({0ms, cut});
  bench.store.acquires.push_back({0ms, cut});
  bench.answers(Granted{{1}}, 0ms);
  REQUIRE(bench.run_at_random_times());
  std::vector<Millis> gaps;
  for (size_t i = 1; i < bench.store.asked_at.size(); ++i) {
    const auto gap = bench.store.asked_at[i] - bench.store.asked_at[i - 1];
    gaps.push_back(std::chrono::duration_cast<Millis>(gap));
  }
  return gaps;
}

TEST_CASE("a waiter far from the head blocks for the slice that the server gives, within bounds") {
  Bench bench;
  for (Millis slice : {20'000ms, 20'000ms, 20'000ms, 3'600'000ms, 1ms}) {
    bench.answers(idle_queued(slice), 0ms);
    bench.store.wakes.push_back({1ms, Wake::woken});
  }
  bench.answers(Granted{{1}}, 0ms);
  REQUIRE(bench.run_at_random_times());
  const auto& slices = bench.store.slices;
  for (size_t i : {0U, 1U, 2U, 3U}) {
    CHECK(slices.at(i) >= 18s);
    CHECK(slices.at(i) <= 22s);
  }
  CHECK((slices.at(0) != slices.at(1) || slices.at(0) != slices.at(2)));
  CHECK(slices.at(4) >= 4500ms);
  CHECK(slices.at(4) <= 5500ms);
}

TEST_CASE(
    "after a cut connection idle waiters return spread over a slice, the first ones immediately") {
  Millis most{0};
  for (int i = 0; i < 200; ++i) {
    const auto near = returns_after_a_cut(std::nullopt);
    CHECK(near.at(0) <= 300ms);
    CHECK(near.at(1) + near.at(2) <= 200ms);
    const auto far = returns_after_a_cut(20s);
    most = std::max(most, far.at(0));
    CHECK(far.at(0) <= 20s);
    CHECK(far.at(1) >= 5s);
    CHECK(far.at(2) >= 5s);
    // After a slice of up to 22 s, and after a failure on the way back: within its heartbeat.
    CHECK(22s + far.at(0) + far.at(1) < 60s);
  }
  CHECK(most > 10s);
}

// A waiter that nobody wakes for a slice. The heartbeat has this answer; the next acquire() grants
// the lock. Returns how often it blocked before it asked.
size_t waits_before_it_asks(Result<HeartbeatReply> answer, AcquireCall call,
                            Millis slice = 20'000ms) {
  Bench bench;
  Queued queued = idle_queued(slice);
  queued.obstacle = Holder{.owner = "holder"};
  bench.answers(queued, 0ms);
  bench.store.heartbeats.push_back({1ms, std::move(answer)});
  bench.store.wakes.push_back({slice - timing::wait_jitter(slice), Wake::slept});
  bench.store.wakes.push_back({1s, Wake::woken});
  bench.answers(Granted{{1}}, 0ms);
  REQUIRE(bench.loop.acquire(std::move(call), {}));
  CHECK(bench.store.asked.size() == 2);
  return bench.store.slices.size();
}

TEST_CASE("an idle waiter sends a heartbeat, and asks if that is not enough") {
  test::FixedRandom random;
  const AcquireCall call{*LockName::parse("job"), Owner::fresh(random)};
  const HeartbeatReply enough = StillQueued{8, 20s, "holder", 40s};
  CHECK(waits_before_it_asks(enough, call) == 2);
  CHECK(waits_before_it_asks(HeartbeatReply(StillQueued{8, 20s, "another", 40s}), call) == 1);
  CHECK(waits_before_it_asks(HeartbeatReply(RetryNow{}), call) == 1);
  CHECK(waits_before_it_asks(Error{ErrorKind::unavailable, "reset", Retry::later}, call) == 1);
  CHECK(waits_before_it_asks(enough, call, 5s) == 1);
  AcquireCall once = call;
  once.once.emplace();
  CHECK(waits_before_it_asks(enough, once) == 1);
  AcquireCall passes = call;
  passes.while_closed = true;
  CHECK(waits_before_it_asks(enough, passes) == 1);
}

TEST_CASE("the reply to a heartbeat shows the position and the rest of the holder's lease") {
  Bench bench;
  Queued queued = idle_queued(20s);
  queued.obstacle = Holder{.owner = "holder", .since = {1}, .left = 1s};
  bench.answers(queued, 0ms);
  bench.store.heartbeats.push_back({0ms, HeartbeatReply(StillQueued{8, 20s, "holder", 40s})});
  bench.store.wakes.push_back({18s, Wake::slept});
  bench.replies_to_cancel(CancelReply::was_queued);
  auto result = bench.run(bench.within(25s));
  REQUIRE(result);
  CHECK(bench.watcher.queued_seen == 2);
  const auto& late = std::get<TimedOut>(*result);
  REQUIRE(holder_in(late.obstacle) != nullptr);
  CHECK(holder_in(late.obstacle)->held == 25s);
  CHECK(holder_in(late.obstacle)->left == 33s);
}
