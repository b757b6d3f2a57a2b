#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "lock/failures.hpp"
#include "lock/wait.hpp"
#include "support/scripted_store.hpp"

// How long an acquisition waits for a server that is away, and how it ends then.
using namespace std::chrono_literals;
using namespace rlock;
using namespace rlock::lock;

namespace {

const Error kRefused{ErrorKind::unavailable, "Connection refused", Retry::later};
const Error kLoading{ErrorKind::unavailable, "LOADING", Retry::later, Answered::yes,
                     Cause::loading};
const Error kReadOnly{ErrorKind::unavailable, "READONLY", Retry::later, Answered::yes,
                      Cause::read_only};
const Error kUnknownHost{ErrorKind::unavailable, "no such name", Retry::later, Answered::no,
                         Cause::unknown_host};
const Error kUnknownMaster{ErrorKind::unavailable, "no such master", Retry::later, Answered::yes,
                           Cause::unknown_master};

struct Observed final : WaitObserver {
  std::vector<TimePoint> until;
  void no_server(const Error&, TimePoint limit) override { until.push_back(limit); }
};

using Answer = std::function<Result<AcquireReply>(Nanos age)>;

// Answers by the time that has passed since the acquisition began.
class TimedStore final : public LockStore {
 public:
  TimedStore(test::ScriptedStore& script, const test::FakePoller& poller, Answer answer)
      : script_(script), poller_(poller), start_(poller.now()), answer_(std::move(answer)) {}
  InFlight<AcquireReply> acquire(const AcquireCall& call) override {
    script_.acquires = {{1ms, answer_(poller_.now() - start_)}};
    return script_.acquire(call);
  }
  InFlight<RenewReply> renew(const RenewCall& call) override { return script_.renew(call); }
  InFlight<ReleaseReply> release(const ReleaseCall& call) override { return script_.release(call); }
  InFlight<CancelReply> cancel(const CancelCall& call) override {
    script_.replies(1ms, CancelReply::not_found);
    return script_.cancel(call);
  }
  InFlight<Wake> wait_for_wake(const LockName& name, const Owner& owner, Millis slice) override {
    return script_.wait_for_wake(name, owner, slice);
  }
  std::string server() const override { return script_.server(); }

 private:
  test::ScriptedStore& script_;
  const test::FakePoller& poller_;
  TimePoint start_;
  Answer answer_;
};

struct Outage {
  test::FakePoller poller;
  test::ScriptedStore store{poller};
  util::SystemRandom random;
  Observed observed;
  TimePoint start = poller.now();
  AcquireCall call{*LockName::parse("job"), Owner::fresh(random)};
  WaitLimits limits{};

  Result<WaitResult> acquire_from(LockStore& server) {
    return WaitLoop(server, poller, random, observed).acquire(call, limits);
  }
  Result<WaitResult> acquire(Answer answer) {
    TimedStore server(store, poller, std::move(answer));
    return acquire_from(server);
  }
  // It always fails with this error: how, and after how long.
  Error fails_with(const Error& error) {
    auto result = acquire([&](Nanos) { return Result<AcquireReply>(error); });
    REQUIRE_FALSE(result);
    return result.error();
  }
  Millis took() const { return std::chrono::duration_cast<Millis>(poller.now() - start); }
};

bool about(Millis took, Millis expected) {
  return took >= expected && took < expected + 100ms;
}

}  // namespace

TEST_CASE("a run waits for the server as for the lock, and says how long it waited") {
  Outage outage;
  Millis expected = 60s;
  SUBCASE("without --wait for 60 s") {}
  SUBCASE("with --wait until that expires") {
    expected = 7s;
    outage.limits.deadline = outage.start + expected;
  }
  SUBCASE("with a short --wait at least for --connect-timeout, as without waiting") {
    expected = 2s;
    outage.limits.deadline = outage.start + 300ms;
  }
  SUBCASE("without waiting for --connect-timeout") {
    expected = 2s;
    outage.call.queueing = Queueing::never;
  }
  SUBCASE("without waiting for a long --connect-timeout") {
    expected = 70s;
    outage.limits.reach = expected;
    outage.call.queueing = Queueing::never;
  }
  const Error end = outage.fails_with(kRefused);
  CHECK(end.kind == ErrorKind::unavailable);
  CHECK(about(outage.took(), expected));
  CHECK(about(end.tried, expected));
  REQUIRE_FALSE(outage.observed.until.empty());
  CHECK(outage.observed.until.front() == outage.start + expected);
}

TEST_CASE("a server that comes back in time is asked about once a second until then") {
  Outage outage;
  auto result = outage.acquire([&](Nanos age) {
    return age < 50s ? Result<AcquireReply>(kRefused) : Result<AcquireReply>(Granted{{1}});
  });
  REQUIRE(result);
  CHECK(std::holds_alternative<HeldLock>(*result));
  CHECK(outage.took() < 52s);
  CHECK(outage.store.asked.size() > 40);
  CHECK(outage.store.asked.size() < 75);
}

TEST_CASE("a thousand runs that wait for a server come back at different times") {
  constexpr int kRuns = 1000;
  std::vector<Millis> first;
  for (int i = 0; i < kRuns; ++i) {
    Outage outage;
    REQUIRE(outage.acquire([&](Nanos age) {
      return age < 20s ? Result<AcquireReply>(kRefused) : Result<AcquireReply>(Granted{{1}});
    }));
    first.push_back(outage.took() - 20s);
  }
  // Of the time of about a second and a half that they need, no tenth has a third of them.
  for (Millis from = 0ms; from < 1600ms; from += 150ms) {
    const auto together = std::count_if(first.begin(), first.end(), [&](Millis came) {
      return came >= from && came < from + 150ms;
    });
    CHECK(together < kRuns / 3);
  }
  CHECK(*std::max_element(first.begin(), first.end()) < 1600ms);
}

TEST_CASE(
    "a name that does not exist, and a replica, are errors of the configuration if nothing else "
    "was "
    "wrong") {
  for (const Error& cause : {kUnknownHost, kReadOnly}) {
    Outage outage;
    outage.limits.deadline = outage.start + 5s;
    const Error end = outage.fails_with(cause);
    CHECK(end.kind == ErrorKind::config);
    CHECK(end.tried == 0ms);
    CHECK(about(outage.took(), 5s));
    Outage mixed;
    mixed.limits.deadline = mixed.start + 5s;
    auto result =
        mixed.acquire([&](Nanos age) { return Result<AcquireReply>(age < 1s ? kRefused : cause); });
    REQUIRE_FALSE(result);
    CHECK(result.error().kind == ErrorKind::unavailable);
    CHECK(about(result.error().tried, 5s));
  }
}

TEST_CASE("a name that was right before may be gone for a while") {
  Outage outage;
  outage.limits.deadline = outage.start + 5s;
  auto result = outage.acquire([&](Nanos age) {
    return age < 100ms ? Result<AcquireReply>(RetryNow{}) : Result<AcquireReply>(kUnknownHost);
  });
  REQUIRE_FALSE(result);
  CHECK(result.error().kind == ErrorKind::unavailable);
}

TEST_CASE("a waiter whose certificates were replaced tries for a minute, whatever its --wait") {
  const Error distrust{ErrorKind::denied, "no trusted CA", Retry::later, Answered::no,
                       Cause::certificate_authority};
  Outage outage;
  outage.limits.deadline = outage.start + 10min;
  SUBCASE("and then access is denied") {
    auto result = outage.acquire([&](Nanos age) {
      return age < 100ms ? Result<AcquireReply>(RetryNow{}) : Result<AcquireReply>(distrust);
    });
    REQUIRE_FALSE(result);
    CHECK(result.error().kind == ErrorKind::denied);
    CHECK(outage.took() >= 60s);
    CHECK(outage.took() < 62s);
  }
  SUBCASE("unless no server has carried out its request so far") {
    CHECK(outage.fails_with(distrust).kind == ErrorKind::denied);
    CHECK(outage.took() < 100ms);
  }
}

TEST_CASE("a master that no sentinel knows is an error of the configuration") {
  Outage outage;
  SUBCASE("after 5 s of a run that waits") {
    CHECK(outage.fails_with(kUnknownMaster).kind == ErrorKind::config);
    CHECK(outage.took() >= 5s);
    CHECK(outage.took() < 7s);
  }
  SUBCASE("after --connect-timeout with -n") {
    outage.call.queueing = Queueing::never;
    CHECK(outage.fails_with(kUnknownMaster).kind == ErrorKind::config);
    CHECK(about(outage.took(), 2s));
  }
  SUBCASE("but not with -n if something else was wrong, too") {
    outage.call.queueing = Queueing::never;
    auto result = outage.acquire(
        [&](Nanos age) { return Result<AcquireReply>(age < 1s ? kRefused : kUnknownMaster); });
    REQUIRE_FALSE(result);
    CHECK(result.error().kind == ErrorKind::unavailable);
    CHECK(about(outage.took(), 2s));
  }
  SUBCASE("but not of a run that a server has answered") {
    outage.limits.deadline = outage.start + 20s;
    auto result = outage.acquire([&](Nanos age) {
      return age < 100ms ? Result<AcquireReply>(RetryNow{}) : Result<AcquireReply>(kUnknownMaster);
    });
    REQUIRE_FALSE(result);
    CHECK(result.error().kind == ErrorKind::unavailable);
    CHECK(about(outage.took(), 20s));
  }
  SUBCASE("from the moment when nothing else is wrong any more") {
    auto result = outage.acquire(
        [&](Nanos age) { return Result<AcquireReply>(age < 10s ? kRefused : kUnknownMaster); });
    REQUIRE_FALSE(result);
    CHECK(result.error().kind == ErrorKind::config);
    CHECK(outage.took() >= 15s);
  }
}

TEST_CASE("--fail-open decides by itself how long no server may answer, until one has answered") {
  Outage outage;
  Millis expected = 3s;
  outage.limits.unreached = expected;
  Error cause = kRefused;
  SUBCASE("whatever --wait says") {}
  SUBCASE("with a shorter --wait") {
    outage.limits.deadline = outage.start + 1s;
  }
  SUBCASE("without waiting") {
    outage.call.queueing = Queueing::never;
  }
  SUBCASE("a server that is not ready has answered: then --wait counts") {
    cause = kLoading;
    expected = 60s;
  }
  SUBCASE("a longer time than that of --wait") {
    outage.limits.unreached = expected = 90s;
    outage.limits.deadline = outage.start + 5s;
  }
  const Error end = outage.fails_with(cause);
  CHECK(about(outage.took(), expected));
  CHECK(end.answered == cause.answered);
}

TEST_CASE("a signal stops the wait for a server immediately") {
  Outage outage;
  outage.poller.interrupt_at(outage.start + 10s);
  auto result = outage.acquire([&](Nanos) { return Result<AcquireReply>(kRefused); });
  REQUIRE(result);
  CHECK(std::holds_alternative<Interrupted>(*result));
  CHECK(outage.took() < 10s + 50ms);
  CHECK(outage.store.cancelled == 1);
}

TEST_CASE("a silent server is tried again and again, each time over a new connection") {
  Outage outage;
  outage.limits.deadline = outage.start + 30s;
  for (int i = 0; i < 100; ++i) outage.store.acquires.push_back({});
  auto result = outage.acquire_from(outage.store);
  REQUIRE_FALSE(result);
  CHECK(outage.store.asked.size() > 5);
  CHECK(outage.took() < 31s);
}
