// What is done once, over several servers: marks, and what is forgotten.
#include "lock_quorum_servers.hpp"

namespace rlock::lock {
namespace {

using namespace std::chrono_literals;
using test::ScriptedStore;
using test::Servers;
using test::Trio;

constexpr Millis kSoon{1}, kLater{2};

Once daily() {
  return {OnceKind::period, "day:2026-11-22", 24h, {}};
}

AcquireCall call_of(const Servers& servers) {
  AcquireCall call{{servers.name, servers.owner}};
  call.attempt = 1;
  call.once = daily();
  return call;
}

AlreadyDone done_by(uint64_t token) {
  AlreadyDone done;
  done.token = {token};
  done.record = "by " + std::to_string(token);
  return done;
}

void grants(ScriptedStore& store, Granted granted = {}) {
  store.replies(kSoon, granted);
  store.replies(kLater, Renewal{});
  store.replies(kSoon, CancelReply::was_granted);
}

void says(ScriptedStore& store, Millis when, const AcquireReply& reply) {
  store.replies(when, reply);
  store.replies(kSoon, CancelReply::not_found);
}

AcquireReply answer(Servers& servers) {
  return servers.answer(true, call_of(servers));
}

}  // namespace

TEST_CASE(
    "work that one server knows to be done is done, and a grant of another server is cancelled") {
  Servers five(5);
  for (ScriptedStore* store : five.stores) grants(*store);
  // While the others grant it, or while they confirm the grant.
  for (Millis when : {kSoon, kLater}) {
    CAPTURE(when.count());
    for (ScriptedStore* store : five.stores) grants(*store), store->cancelled = 0;
    says(*five.stores.back(), when, done_by(7));
    const AcquireReply reply = answer(five);
    REQUIRE(refusal_in<AlreadyDone>(reply));
    CHECK(refusal_in<AlreadyDone>(reply)->record == "by 7");
    for (size_t i = 0; i < 4; ++i) {
      CHECK(five.stores[i]->cancelled == 1);
      CHECK(five.stores[i]->cancelled_how == CancelHow::cancelled);
    }
    CHECK(five.stores.back()->cancelled == 0);
  }
}

TEST_CASE("a grant next to a server that says done waits for a server that may have forgotten it") {
  Servers five(5);
  for (ScriptedStore* store : five.stores) grants(*store);
  says(*five.stores.back(), kSoon, done_by(7));
  Granted forgotten;
  forgotten.forgotten = {8};
  five.stores[3]->replies(kLater, forgotten);
  CHECK(std::holds_alternative<Granted>(answer(five)));
}

TEST_CASE("if several servers know the work to be done, the latest success counts") {
  Trio trio;
  for (size_t i = 0; i < 3; ++i) says(*trio.stores[i], kSoon, done_by(5 + i % 2));
  CHECK(refusal_in<AlreadyDone>(answer(trio))->token == Token{6});
  CHECK(trio.stores.front()->cancelled == 0);
}

TEST_CASE("one server that answers is enough to know that work is done") {
  Trio trio;
  says(*trio.stores.front(), kSoon, done_by(7));
  CHECK(refusal_in<AlreadyDone>(answer(trio)));
}

TEST_CASE("a mark that was forgotten while its server was down does not count") {
  Granted granted{{9}};
  granted.forgotten = {7};
  for (uint64_t token : {7, 8}) {
    Trio trio;
    grants(*trio.stores[0], granted);
    grants(*trio.stores[1], granted);
    says(*trio.stores[2], kSoon, done_by(token));
    CHECK((refusal_in<AlreadyDone>(answer(trio)) != nullptr) == (token > 7));
  }
}

TEST_CASE("failures that were forgotten while their server was down do not count") {
  Granted granted{{9}};
  granted.forgotten = {7};
  for (uint64_t token : {7, 8}) {
    Trio trio;
    grants(*trio.stores[0], granted);
    says(*trio.stores[2], kSoon, FailedTooOften{1, {token}});
    CHECK((refusal_in<FailedTooOften>(answer(trio)) != nullptr) == (token > 7));
  }
}

TEST_CASE("runs have failed too often if no majority is possible without a server that says so") {
  Trio other;
  says(*other.stores[0], kSoon, FailedTooOften{3});
  grants(*other.stores[1]);
  grants(*other.stores[2]);
  CHECK(std::holds_alternative<Granted>(answer(other)));
  Trio trio;
  says(*trio.stores[0], kSoon, FailedTooOften{3});
  grants(*trio.stores[1]);
  says(*trio.stores[2], kSoon, FailedTooOften{2});
  const AcquireReply reply = answer(trio);
  REQUIRE(refusal_in<FailedTooOften>(reply));
  CHECK(refusal_in<FailedTooOften>(reply)->times == 3);
  CHECK(trio.stores[1]->cancelled_how == CancelHow::cancelled);
}

TEST_CASE("a success counts as recorded if a majority has it") {
  struct {
    std::vector<Marked> marks;
    Marked merged;
  } const cases[] = {
      {{Marked::yes, Marked::yes, Marked::yes}, Marked::yes},
      {{Marked::yes, Marked::no, Marked::yes}, Marked::yes},
      {{Marked::no, Marked::yes, Marked::no_room}, Marked::no_room},
      {{Marked::yes, Marked::no, Marked::no}, Marked::no},
      {{Marked::no, Marked::no, Marked::no}, Marked::no},
  };
  for (const auto& one : cases) {
    Trio trio;
    for (size_t i = 0; i < 3; ++i) {
      ReleaseReply reply;
      reply.marked = one.marks[i];
      trio.stores[i]->replies(Millis(1 + i), reply);
    }
    QuorumStore quorum(trio.makers(), {trio.random, [] { return uint64_t{1}; }});
    CHECK(trio.finish(quorum.release({trio.name, trio.owner}))->marked == one.merged);
  }
}

TEST_CASE("a request that a server gets later says that it was first asked longer ago") {
  Trio trio;
  trio.all_reply(kSoon, Renewal{}, done_by(1), CancelReply::not_found);
  trio.stores[2]->replies(kSoon + 5ms, Renewal{});
  QuorumStore quorum(trio.makers(), {trio.random, [] { return uint64_t{1}; }});
  (void)trio.finish(quorum.renew({{trio.name, trio.owner}, Entry::outer(), std::nullopt}));
  AcquireCall call = call_of(trio);
  call.asked = 3s;
  (void)trio.finish(quorum.acquire(call));
  CHECK(trio.stores[0]->asked.at(0).asked == 3s);
  CHECK(trio.stores[2]->asked.at(0).asked == 3s + 5ms);
}

TEST_CASE("the servers agree on what is forgotten: up to the last run that has ended") {
  for (bool held : {false, true}) {
    CAPTURE(held);
    Trio trio;
    for (size_t i = 0; i < 3; ++i) {
      Snapshot snapshot;
      snapshot.last_grant = {40 + i};
      snapshot.holders.push_back({.owner = "one", .token = {42}});
      // What a late request has left at a server is no run.
      if (!held)
        snapshot.holders.back() = {.owner = "late", .state = HolderState::granted, .token = {30}};
      trio.stores[i]->replies(kSoon, snapshot);
      trio.stores[i]->replies(kSoon, Forgotten{i, 5 - i});
    }
    QuorumStore quorum(trio.makers(), {trio.random, [] { return uint64_t{1}; }});
    const auto forgotten = trio.finish(quorum.forget({trio.name, {}, {}}));
    CHECK((forgotten->marks == 2 && forgotten->failures == 5));
    for (ScriptedStore* store : trio.stores) {
      CHECK(store->forgotten.at(0).through == (held ? Token{41} : Token{42}));
    }
  }
}

TEST_CASE("work that less than a majority forgets is not forgotten") {
  Trio trio;
  trio.all_reply(kSoon, Snapshot{});
  trio.stores[1]->replies(kSoon, Forgotten{});
  QuorumStore quorum(trio.makers(), {trio.random, [] { return uint64_t{1}; }});
  CHECK(!trio.finish(quorum.forget({trio.name, {}, {}})));
}

}  // namespace rlock::lock
