// A request whose fate is unknown: each kind of request met by each kind of fault, between the real
// rlock and the real server. [FAULTS 12-17, L16, L28, L30, L43, L46]
#include <doctest/doctest.h>
#include <signal.h>

#include <functional>
#include <set>
#include <thread>

#include "faults/scene.hpp"

using namespace rlock;
using test::Fault;
using test::Moment;
using test::Often;
using test::Rlock;
using test::Scene;
using test::TimePoint;
using util::BootClock;
using util::Millis;

namespace {

struct Named {
  Fault fault;
  const char* text;
};
constexpr Named kFaults[] = {{Fault::lose_request, "request lost, connection reset"},
                             {Fault::lose_reply, "reply lost, connection reset"},
                             {Fault::stop_reading, "request never read"},
                             {Fault::swallow_reply, "reply swallowed in silence"},
                             {Fault::late_request, "request delivered when all is over"},
                             {Fault::late_reply, "reply late"},
                             {Fault::trickle_reply, "reply trickled"}};

// What the bounds below are exceeded by on a machine that is busy with other things.
constexpr Millis kLoad{10'000};
// What one request of a command that is no run takes at most: the connect timeout and 3 s.
constexpr Millis kOneRequest{5'000};

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The faults do not wait for each other.
void for_each_fault(const std::function<void(Fault)>& story) {
  test::server();
  std::vector<std::thread> threads;
  for (const Named& named : kFaults) {
    threads.emplace_back([&story, &named] {
      CAPTURE(named.text);
      story(named.fault);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Millis since(TimePoint start) {
  return std::chrono::duration_cast<Millis>(BootClock::now() - start);
}

// The late one, if there is one, comes when everybody else has gone; it must change nothing.
void check_aftermath(Scene& scene, Fault fault) {
  CHECK(scene.litter() == "");
  std::string history = scene.history();
  if (fault == Fault::late_request) CHECK(scene.proxy().deliver() == 1);
  CHECK(scene.litter() == "");
  CHECK(scene.history() == history);
}

// One grant, one command, one release, all of one token.
void check_one_run(Scene& scene) {
  CHECK(scene.history() == scene.ran());
  CHECK(scene.last_grant() + "\n" == scene.ran());
}

}  // namespace

TEST_CASE(
    "an acquire of unknown fate ends in one run or in none, and leaves nothing (13, 17, L30, "
    "L46)") {
  for_each_fault([](Fault fault) {
    Scene scene;
    scene.proxy().aim(Moment::acquire, fault);
    TimePoint start = BootClock::now();
    Rlock rlock = scene.through({"run"}, scene.brief());
    int status = rlock.status();
    CHECK(scene.proxy().struck() == 1);
    // The first contact is bounded by --connect-timeout, what may have been taken goes back in 0.5
    // s.
    CHECK(since(start) < Millis(2'500) + kLoad);
    std::set<Fault> quick{Fault::lose_request, Fault::lose_reply, Fault::late_reply};
    if (quick.contains(fault)) {
      CHECK(status == 7);
      CHECK(rlock.errors() == "");
      check_one_run(scene);
    } else {
      CHECK(status == 69);
      CHECK(mentions(rlock.errors(), "rlock: cannot acquire \"" + scene.name() + "\": "));
      CHECK(mentions(rlock.errors(), "127.0.0.1:"));
      CHECK(scene.ran() == "");
    }
    check_aftermath(scene, fault);
  });
}

TEST_CASE("a claim of unknown fate costs neither the place nor a second grant (13, L28, L43)") {
  for_each_fault([](Fault fault) {
    Scene scene;
    Rlock holder = scene.direct({"run"}, scene.lasting());
    REQUIRE(holder.job().line() == "up");
    Rlock waiter = scene.through({"run", "-w", "30"}, scene.brief());
    REQUIRE(test::eventually([&] { return scene.waiting(1); }));
    scene.proxy().aim(Moment::claim, fault);
    TimePoint start = BootClock::now();
    scene.let_go();
    CHECK(holder.status() == 7);
    CHECK(waiter.status() == 7);
    CHECK(since(start) < Millis(5'000) + kLoad);
    CHECK(scene.proxy().struck() == 1);
    CHECK(waiter.errors() == "");
    auto newest_first = scene.history();
    auto end = scene.ran().find('\n');
    REQUIRE(end != std::string::npos);
    CHECK(newest_first == scene.ran().substr(end + 1) + scene.ran().substr(0, end + 1));
    CHECK(scene.ran().substr(0, end) < scene.ran().substr(end + 1));
    check_aftermath(scene, fault);
  });
}

TEST_CASE("a renewal of unknown fate is repeated, and the command never notices (17, L08)") {
  for_each_fault([](Fault fault) {
    Scene scene;
    scene.proxy().aim(Moment::renew, fault);
    Rlock rlock = scene.through({"run", "-t", "9", "-k", "0.2", "--event-log", scene.event_log()},
                                scene.lasting());
    REQUIRE(rlock.job().line() == "up");
    CHECK(test::eventually([&] { return mentions(scene.events(), "\"renewed\""); }));
    CHECK(scene.proxy().struck() == 1);
    scene.let_go();
    CHECK(rlock.status() == 7);
    CHECK(rlock.errors() == "");
    check_one_run(scene);
    check_aftermath(scene, fault);
  });
}

TEST_CASE("a renewal that comes after the release does not bring the lock back (12, L09)") {
  Scene scene;
  scene.proxy().aim(Moment::renew, Fault::late_request, Often::always);
  Rlock rlock = scene.through({"run", "-t", "9"}, scene.lasting());
  REQUIRE(rlock.job().line() == "up");
  CHECK(test::eventually([&] { return scene.proxy().struck() > 0; }));
  scene.let_go();
  CHECK(rlock.status() == 7);
  CHECK(rlock.errors() == "");
  CHECK(scene.proxy().deliver() >= 1);
  CHECK(scene.litter() == "");
  check_one_run(scene);
}

TEST_CASE(
    "where no renewal comes through the command is dead before the server ends the lease (15)") {
  std::vector<std::thread> threads;
  test::server();
  for (Fault fault : {Fault::stop_reading, Fault::swallow_reply, Fault::lose_request,
                      Fault::late_request, Fault::trickle_reply}) {
    threads.emplace_back([fault] {
      CAPTURE(static_cast<int>(fault));
      Scene scene;
      scene.proxy().aim(Moment::renew, fault, Often::always);
      Rlock rlock = scene.through({"run", "-t", "5"}, scene.lasting());
      REQUIRE(rlock.job().line() == "up");
      TimePoint lease_end = scene.lease_end();
      rlock.job().rest();
      REQUIRE(rlock.job().at_end());
      CHECK(rlock.job().ended_at() < lease_end);
      CHECK(rlock.status() == 76);
      CHECK(mentions(rlock.errors(), "rlock: lost \"" + scene.name() + "\" at 127.0.0.1:"));
      CHECK(mentions(rlock.errors(), "the command was ended"));
      check_aftermath(scene, Fault::lose_reply);
      scene.proxy().deliver();
      CHECK(scene.litter() == "");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE(
    "a release of unknown fate is repeated over a fresh connection, and counts once (14, L16)") {
  for_each_fault([](Fault fault) {
    Scene scene;
    scene.proxy().aim(Moment::release, fault);
    TimePoint start = BootClock::now();
    Rlock rlock = scene.through({"run"}, scene.brief());
    CHECK(rlock.status() == 7);
    CHECK(since(start) < Millis(5'000) + kLoad);
    CHECK(scene.proxy().struck() == 1);
    CHECK(rlock.errors() == "");
    check_one_run(scene);
    check_aftermath(scene, fault);
  });
}

TEST_CASE("a release that nobody confirms is given up in time, and said (14)") {
  for_each_fault([](Fault fault) {
    if (fault == Fault::late_reply) return;  // it is confirmed
    Scene scene;
    scene.proxy().aim(Moment::release, fault, Often::always);
    TimePoint start = BootClock::now();
    Rlock rlock = scene.through({"run", "-t", "8"}, scene.brief());
    CHECK(rlock.status() == 7);
    CHECK(since(start) < Millis(5'000) + kLoad);
    CHECK(scene.proxy().struck() > 1);
    CHECK(mentions(rlock.errors(), "warning: \"" + scene.name() + "\" at 127.0.0.1:"));
    CHECK(mentions(rlock.errors(), "the release could not be confirmed"));
    // What the message says: it frees itself when its lease ends, at the latest.
    Rlock next = scene.direct({"run", "-w", "30"}, scene.brief());
    CHECK(next.status() == 7);
    scene.proxy().deliver();
    CHECK(scene.litter() == "");
  });
}

TEST_CASE("a wait that timed out leaves nothing, whatever becomes of its cancel (L28)") {
  for_each_fault([](Fault fault) {
    Scene scene;
    Rlock holder = scene.direct({"run"}, scene.lasting());
    REQUIRE(holder.job().line() == "up");
    scene.proxy().aim(Moment::cancel, fault);
    TimePoint start = BootClock::now();
    Rlock waiter = scene.through({"run", "-w", "1"}, scene.brief());
    CHECK(waiter.status() == 75);
    CHECK(since(start) < Millis(1'000 + 5'000) + kLoad);
    CHECK(scene.proxy().struck() == 1);
    CHECK(mentions(waiter.errors(), "\"" + scene.name() + "\" at 127.0.0.1:"));
    CHECK(mentions(waiter.errors(), "is busy, waited "));
    CHECK(scene.waiting(0));
    CHECK(scene.count("alive") == "0");
    if (fault == Fault::late_request) CHECK(scene.proxy().deliver() == 1);
    scene.let_go();
    CHECK(holder.status() == 7);
    CHECK(holder.errors() == "");
    check_one_run(scene);
    CHECK(scene.litter() == "");
  });
}

TEST_CASE("a signal ends the wait within bounds, whatever becomes of the cancel (34, L28)") {
  for_each_fault([](Fault fault) {
    Scene scene;
    Rlock holder = scene.direct({"run"}, scene.lasting());
    REQUIRE(holder.job().line() == "up");
    scene.proxy().aim(Moment::cancel, fault);
    Rlock waiter = scene.through({"run"}, scene.brief());
    REQUIRE(test::eventually([&] { return scene.waiting(1); }));
    TimePoint start = BootClock::now();
    test::send_signal(waiter.job().pid(), SIGTERM);
    CHECK(waiter.status() == 128 + SIGTERM);
    CHECK(since(start) < Millis(5'000) + kLoad);
    CHECK(scene.waiting(0));
    if (fault == Fault::late_request) CHECK(scene.proxy().deliver() == 1);
    scene.let_go();
    CHECK(holder.status() == 7);
    check_one_run(scene);
    CHECK(scene.litter() == "");
  });
}

TEST_CASE(
    "a force-unlock of unknown fate breaks the holder that it showed and nobody else, and says "
    "so") {
  for_each_fault([](Fault fault) {
    Scene scene;
    Rlock victim = scene.direct({"run"}, scene.lasting());
    REQUIRE(victim.job().line() == "up");
    Rlock next = scene.direct({"run", "-w", "60"}, scene.lasting());
    REQUIRE(test::eventually([&] { return scene.waiting(1); }));
    scene.proxy().aim(Moment::force_unlock, fault);
    TimePoint start = BootClock::now();
    Rlock operators = scene.through({"force-unlock", "--yes", "--now", "--reason", "3 a.m."});
    std::string said = operators.job().rest(Millis(60'000));
    CHECK(operators.status() == 0);
    CHECK(since(start) < kOneRequest + kLoad);
    CHECK(scene.proxy().struck() == 1);
    CHECK(mentions(said, "broke \"" + scene.name() + "\""));
    CHECK(mentions(said, "  was held by "));
    CHECK(victim.status() == 76);
    CHECK(mentions(victim.errors(), "3 a.m."));
    // Late or twice, it must not hit the one who came next.
    REQUIRE(next.job().line() == "up");
    if (fault == Fault::late_request) CHECK(scene.proxy().deliver() == 1);
    scene.let_go();
    CHECK(next.status() == 7);
    CHECK(next.errors() == "");
    CHECK(scene.litter() == "");
  });
}

TEST_CASE("steps of unknown fate are repeated over a fresh connection, and count once (L16)") {
  for_each_fault([](Fault fault) {
    for (Moment moment : {Moment::renew, Moment::release}) {
      Scene scene;
      Rlock acquire = scene.direct({"acquire", "--ttl", "1m"});
      std::string owner = acquire.job().line();
      REQUIRE(acquire.status() == 0);
      scene.proxy().aim(moment, fault);
      TimePoint start = BootClock::now();
      Rlock step = scene.through({moment == Moment::renew ? "renew" : "release", "--owner", owner});
      CHECK(step.status() == 0);
      CHECK(since(start) < 2 * kOneRequest + kLoad);  // renew asks how the lock is held, too
      CHECK(step.errors() == "");
      CHECK(scene.proxy().struck() == 1);
      if (moment == Moment::renew) {
        Rlock release = scene.direct({"release", "--owner", owner});
        CHECK(release.status() == 0);
      }
      CHECK(scene.history() == scene.last_grant() + "\n");
      check_aftermath(scene, fault);
    }
  });
}
