// Requests to several servers, step by step: scripted servers, and a clock that moves as far as the
// request says that it is due.
#include <doctest/doctest.h>

#include <cstdint>

#include "lock_quorum_servers.hpp"

namespace rlock::lock {

using namespace std::chrono_literals;
using test::ScriptedStore;
using test::Servers;
using test::Step;
using test::Trio;

TEST_CASE("a blocking wait that the servers end is followed by another") {
  Trio trio;
  for (ScriptedStore* store : trio.stores) {
    store->wakes.push_back({1s, Result<Wake>(Wake::slept)});
    store->wakes.push_back({500ms, Result<Wake>(Wake::woken)});
  }
  const auto makers = trio.makers();
  WakeListeners listeners(makers, trio.quorum);
  auto listening = listeners.listen(trio.name, trio.owner, 4s);
  CHECK(trio.drive(*listening) == 1500ms);
  auto wake = listening->take();
  REQUIRE(wake);
  CHECK(*wake == Wake::woken);
}

TEST_CASE("a Redlock attempt that pauses while a server hangs sleeps meanwhile") {
  Trio trio;
  Holder contender;
  contender.owner = "other";
  trio.stores[0]->acquires.push_back({1ms, Result<AcquireReply>(Busy{contender, 0})});
  trio.stores[1]->acquires.push_back({1ms, Result<AcquireReply>(Granted{})});
  for (size_t i : {0, 1}) {
    trio.stores[i]->cancels.push_back({1ms, Result<CancelReply>(CancelReply::was_granted)});
  }
  AcquireCall call{{trio.name, trio.owner}};
  call.queueing = Queueing::never;
  uint64_t ties = kMaxTies - 1;
  RedlockAcquire one(trio.members, trio.quorum, trio.random, {call, ties});
  CHECK(trio.drive(one) > timing::kTryCancelTime);
  auto reply = one.take();
  REQUIRE(reply);
  CHECK(std::holds_alternative<RetryNow>(*reply));
  CHECK(ties == kMaxTies);
}

TEST_CASE("after a split vote, a contender that does not wait tries again with growing delays") {
  Trio trio;
  AcquireCall call{{trio.name, trio.owner}};
  call.queueing = Queueing::never;
  call.attempt = 1;
  for (uint64_t before : {0, 3}) {
    for (bool native : {false, true}) {
      CAPTURE(before);
      CAPTURE(native);
      Holder one_holder, other_holder;
      one_holder.owner = "one";
      other_holder.owner = "other";
      trio.stores[0]->replies(1ms, Busy{one_holder, 0});
      trio.stores[1]->replies(1ms, Granted{});
      trio.stores[2]->replies(1ms, Busy{other_holder, 0});
      trio.all_reply(1ms, CancelReply::was_granted);
      trio.start = trio.poller.now();
      uint64_t ties = before;
      auto one = trio.asking(native, call, ties);
      CHECK(trio.drive(*one) == 1ms + 5ms * (1 << before));
      auto reply = one->take();
      REQUIRE(reply);
      CHECK(std::holds_alternative<RetryNow>(*reply));
      CHECK(ties == before + 1);
    }
  }
}

TEST_CASE("a refusal by a majority does not wait for a server that hangs") {
  Trio trio;
  AcquireCall call{{trio.name, trio.owner}};
  call.queueing = Queueing::never;
  call.attempt = 1;
  Holder contender;
  contender.owner = "other";
  for (bool native : {false, true}) {
    CAPTURE(native);
    trio.all_reply(1ms, Busy{contender, 0}, CancelReply::not_found);
    trio.stores[2]->acquires = {{}};
    CHECK(refusal_in<Busy>(trio.answer(native, call)));
    CHECK(trio.took == 2ms);
  }
}

TEST_CASE("a majority that is reached after the lease's end is not a grant") {
  Trio trio;
  AcquireCall call{{trio.name, trio.owner}};
  call.queueing = Queueing::never;
  call.ttl = 40ms;
  call.attempt = 1;
  const Millis late{45}, soon{1};
  for (Millis last : {Millis(20), late}) {
    CAPTURE(last.count());
    // What a native grant needs last is the confirmation of its token.
    for (bool native : {false, true}) {
      CAPTURE(native);
      trio.all_reply(native ? soon : last, Granted{});
      trio.all_reply(last, Renewal{});
      trio.all_reply(soon, CancelReply::was_granted);
      CHECK(std::holds_alternative<Granted>(trio.answer(native, call)) == (last < late));
    }
  }
}

TEST_CASE("a grant and a release of five cost 13 requests, and two that hang cost none") {
  for (size_t hung : {0, 2}) {
    CAPTURE(hung);
    Servers five(5);
    const Millis soon{1};
    for (size_t i = 0; i < five.stores.size(); ++i) {
      if (i < hung) continue;
      five.stores[i]->replies(soon, Granted{{i}});
      five.stores[i]->replies(soon, Renewal{});
      five.stores[i]->replies(soon, ReleaseReply{});
    }
    for (size_t i = 0; i < hung; ++i) five.stores[i]->reached = false;
    const auto stores = five.stores;
    QuorumStore quorum(five.makers(), {five.random, [] { return uint64_t{1}; }});
    auto acquiring = quorum.acquire({five.name, five.owner});
    CHECK(five.drive(*acquiring) == 2 * soon);
    CHECK(std::get<Granted>(*acquiring->take()).token == Token{4});
    acquiring.reset();
    auto releasing = quorum.release({five.name, five.owner});
    CHECK(five.drive(*releasing) == 3 * soon);
    size_t acquires = 0, renewals = 0, releases = 0;
    for (const ScriptedStore* store : stores) {
      acquires += store->asked.size();
      renewals += store->renewed.size();
      releases += static_cast<size_t>(store->released);
    }
    CHECK(acquires == 5);
    CHECK(renewals == 3);
    CHECK(releases == 5 - hung);
  }
}

TEST_CASE("each try of an acquisition over a quorum has a greater number") {
  Trio trio;
  QuorumStore quorum(trio.makers(), {trio.random, [] { return uint64_t{1}; }});
  for (uint64_t number : {1, 2, 3}) {
    trio.all_reply(1ms, Queued{});
    (void)trio.finish(quorum.acquire({trio.name, trio.owner}));
    for (const ScriptedStore* store : trio.stores) CHECK(store->asked.back().attempt == number);
  }
}

TEST_CASE("after the end of its lease a renewal over a quorum brings no token to restore it with") {
  Trio trio;
  QuorumStore quorum(trio.makers(), {trio.random, [] { return uint64_t{1}; }});
  const TimePoint now = trio.poller.now();
  for (std::optional<TimePoint> lease_end :
       {std::optional(now + 1ms), std::optional(now), std::optional<TimePoint>()}) {
    trio.all_reply(0ms, Renewal::extended);
    (void)trio.finish(
        quorum.renew({{trio.name, trio.owner}, Entry::outer(), Restore{Token{7}, 0, lease_end}}));
    for (const ScriptedStore* store : trio.stores) {
      const auto& restore = store->renewed.back().restore;
      REQUIRE(restore.has_value() == (lease_end > now));
      if (restore) CHECK(restore->token == Token{7});
    }
  }
}

TEST_CASE("a release over a quorum does not wait for a renewal that is not answered") {
  Trio trio;
  QuorumStore quorum(trio.makers(), {trio.random, [] { return uint64_t{1}; }});
  auto renewing = quorum.renew({{trio.name, trio.owner}, Entry::outer(), std::nullopt});
  renewing->advance(trio.poller.now());
  renewing.reset();
  trio.all_reply(1ms, ReleaseReply{});
  auto releasing = quorum.release({trio.name, trio.owner});
  CHECK(trio.drive(*releasing) == 1ms);
  CHECK(releasing->take());
}

TEST_CASE(
    "a process that did not acquire the lock releases it even if it reached no server before") {
  Trio trio;
  for (ScriptedStore* store : trio.stores) {
    store->reached = false;
    store->replies(1ms, ReleaseReply{});
  }
  QuorumStore quorum(trio.makers(), {trio.random, [] { return uint64_t{1}; }});
  CHECK(trio.finish(quorum.release({trio.name, trio.owner})));
  for (const ScriptedStore* store : trio.stores) CHECK(store->released == 1);
}

TEST_CASE("the other servers confirm a grant instead of one that refuses or is slow") {
  const Millis soon{1};
  const Step<RenewReply> refuses{soon, Result<RenewReply>(Lost{LostHow::full, {}, {}})};
  for (const Step<RenewReply>& second : {refuses, Step<RenewReply>{}}) {
    Servers five(5);
    five.all_reply(soon, Granted{}, Renewal{});
    five.stores[1]->renews = {second};
    CHECK(std::holds_alternative<Granted>(five.answer(true, {five.name, five.owner})));
    CHECK(five.took == 3 * soon);
    CHECK(five.stores[3]->renewed.size() == 1);
  }
}

TEST_CASE("a grant is complete once the servers that were left out have confirmed it") {
  Trio trio;
  const Millis soon{1}, later{20};
  trio.all_reply(soon, Granted{}, Renewal{});
  trio.stores.back()->replies(later, Renewal{});
  QuorumStore quorum(trio.makers(), {trio.random, [] { return uint64_t{1}; }});
  CHECK(quorum.complete_grant() == nullptr);
  auto acquiring = quorum.acquire({trio.name, trio.owner});
  CHECK(trio.drive(*acquiring) == 2 * soon);
  const Granted granted = std::get<Granted>(*acquiring->take());
  acquiring.reset();
  CHECK(trio.stores.back()->renewed.empty());
  auto completion = quorum.complete_grant();
  REQUIRE(completion != nullptr);
  CHECK(trio.drive(*completion) == 2 * soon + later);
  CHECK(*completion->take() == GrantReach::everywhere);
  CHECK(trio.stores.back()->renewed.at(0).restore->token == granted.token);
  completion.reset();
  CHECK(quorum.complete_grant() == nullptr);
}

TEST_CASE(
    "over Redlock a grant is complete once the servers that it did not wait for have answered") {
  Trio trio;
  const Millis soon{1}, later{20};
  trio.all_reply(soon, Granted{});
  trio.stores.back()->replies(later, Granted{});
  RedlockStore servers(trio.makers(), {trio.random, [] { return uint64_t{1}; }});
  auto acquiring = servers.acquire({trio.name, trio.owner});
  CHECK(trio.drive(*acquiring) == soon);
  REQUIRE(std::holds_alternative<Granted>(*acquiring->take()));
  acquiring.reset();
  auto completion = servers.complete_grant();
  REQUIRE(completion != nullptr);
  CHECK(trio.drive(*completion) == later);
}

TEST_CASE("the confirmation of a grant can restore all that the run asked for") {
  Trio trio;
  trio.all_reply(1ms, Granted{}, Renewal{});
  AcquireCall call{{.name = trio.name,
                    .owner = trio.owner,
                    .ttl = 7s,
                    .min_hold = 3s,
                    .responsive = Responsive::run,
                    .record = "who",
                    .once = Once{OnceKind::key, "v17", {}, 3},
                    .history_rows = 5}};
  call.attempt = 4;
  CHECK(std::holds_alternative<Granted>(trio.answer(true, call)));
  const RenewCall& sent = trio.stores[0]->renewed.at(0);
  CHECK(sent.owner == call.owner);
  CHECK(sent.ttl == call.ttl);
  CHECK(sent.min_hold == call.min_hold);
  CHECK(sent.responsive == call.responsive);
  CHECK(sent.record == call.record);
  CHECK(sent.once == call.once);
  CHECK(sent.history_rows == call.history_rows);
  CHECK(sent.restore->attempt == call.attempt);
}

TEST_CASE("a grant that a server refuses to confirm, or is silent about, is not complete") {
  const Step<RenewReply> refuses{1ms, Result<RenewReply>(Lost{LostHow::full, {}, {}})};
  for (const Step<RenewReply>& last : {refuses, Step<RenewReply>{}}) {
    Trio trio;
    trio.all_reply(1ms, Granted{}, Renewal{});
    trio.stores.back()->renews = {last};
    QuorumStore quorum(trio.makers(), {trio.random, [] { return uint64_t{1}; }});
    REQUIRE(std::holds_alternative<Granted>(*trio.finish(quorum.acquire({trio.name, trio.owner}))));
    auto completion = quorum.complete_grant();
    REQUIRE(completion != nullptr);
    CHECK(trio.drive(*completion) == 2ms + (last.answer ? 1ms : timing::kStragglerTime));
    CHECK(*completion->take() == GrantReach::majority);
  }
}

TEST_CASE("a client whose clock is ahead keeps the position that the servers gave it") {
  Trio trio;
  Holder contender;
  contender.owner = "other";
  for (ScriptedStore* store : trio.stores) {
    Queued place;
    place.ticket = {store == trio.stores.front() ? 40U : 50U};
    place.obstacle = contender;
    store->replies(1ms, place);
  }
  AcquireCall call{{trio.name, trio.owner}};
  call.ticket = {900};
  call.attempt = 1;
  CHECK(std::get<Queued>(trio.answer(true, call)).ticket == Ticket{50});
}

// Each server counts heartbeats of its own, by the place that the waiter has there.
TEST_CASE("over a quorum a waiter blocks for the shortest slice that a server gives") {
  Trio trio;
  Holder contender;
  contender.owner = "other";
  std::vector<std::optional<Millis>> given{20s, 10s, 15s};
  Millis shortest = 10s;
  SUBCASE("near the head at one server") {
    given.at(2) = std::nullopt;
    shortest = 5s;
  }
  SUBCASE("far from the head at each") {}
  for (size_t i = 0; i < given.size(); ++i) {
    Queued place;
    place.ticket = {50};
    place.obstacle = contender;
    place.slice = given.at(i);
    trio.stores.at(i)->replies(1ms, place);
  }
  AcquireCall call{{trio.name, trio.owner}};
  call.attempt = 1;
  CHECK(std::get<Queued>(trio.answer(true, call)).slice == shortest);
}

}  // namespace rlock::lock
