#pragma once

#include <doctest/doctest.h>

#include <cstdint>

#include "lock/quorum/quorum.hpp"
#include "lock/quorum/redlock.hpp"
#include "lock/quorum/try.hpp"
#include "lock/timing.hpp"
#include "support/scripted_store.hpp"

// Scripted servers of a quorum, and a clock that moves as far as the request says that it is due.
namespace rlock::test {

using namespace std::chrono_literals;

struct Servers {
  FakePoller poller;
  FixedRandom random;
  lock::Quorum quorum;
  std::vector<lock::Member> members;
  std::vector<ScriptedStore*> stores;
  TimePoint start = poller.now();
  Millis took{0};
  lock::LockName name = *lock::LockName::parse("job");
  lock::Owner owner = lock::Owner::fresh(random);

  explicit Servers(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      auto store = std::make_unique<ScriptedStore>(poller);
      stores.push_back(store.get());
      members.push_back({std::move(store)});
      quorum.servers.push_back(std::string(1, static_cast<char>('a' + i)) + ":1");
    }
  }

  std::vector<lock::MakeServer> makers() {
    std::vector<lock::MakeServer> makers;
    for (lock::Member& member : members) {
      makers.push_back([&member] { return std::move(member.store); });
    }
    return makers;
  }

  // What all of them reply to the next request of each kind.
  template <class... Reply>
  void all_reply(Millis delay, const Reply&... replies) {
    for (ScriptedStore* store : stores) (store->replies(delay, replies), ...);
  }

  std::unique_ptr<lock::QuorumTry> asking(bool native, const lock::AcquireCall& call,
                                          uint64_t& ties) {
    const lock::QuorumTry::Params one{call, ties};
    if (native) return std::make_unique<lock::QuorumAcquire>(members, quorum, random, one);
    return std::make_unique<lock::RedlockAcquire>(members, quorum, random, one);
  }

  // What a try of an acquisition ends with; it took so long.
  lock::AcquireReply answer(bool native, const lock::AcquireCall& call) {
    uint64_t ties = 0;
    start = poller.now();
    auto one = asking(native, call, ties);
    took = drive(*one);
    auto reply = one->take();
    REQUIRE(reply);
    return *reply;
  }

  template <class T>
  Result<T> finish(lock::InFlight<T> request) {
    start = poller.now();
    took = drive(*request);
    return request->take();
  }

  // Drives a request to its end. A request that is due in the past makes the loop that drives it
  // spin.
  Millis drive(lock::Request& request) {
    while (!request.advance(poller.now())) {
      REQUIRE(request.due() > poller.now());
      REQUIRE(request.due() < start + 1h);
      poller.pause(request.due(), lock::Interruptible::no);
    }
    return std::chrono::duration_cast<Millis>(poller.now() - start);
  }
};

struct Trio : Servers {
  Trio() : Servers(3) {}
};

}  // namespace rlock::test
