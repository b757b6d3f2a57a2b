// A request whose fate is unknown: each kind of request met by each kind of fault, between the real
// rlock and the real server.
#include <doctest/doctest.h>

#include <set>

#include "faults/scene.hpp"

using namespace rlock;
using namespace rlock::test;

TEST_CASE("an acquire whose reply is lost ends in one run or in none, and leaves nothing") {
  for_each_fault([](Fault fault) {
    Scene scene;
    scene.proxy().inject(RequestKind::acquire, fault);
    TimePoint start = BootClock::now();
    Rlock rlock = scene.through({"run", "-q", "-n", "--connect-timeout", "8s"}, scene.brief());
    int status = rlock.status();
    CHECK(scene.proxy().injected() == 1);
    // The first contact is bounded by --connect-timeout, what may have been taken goes back in 0.5
    // s.
    CHECK(since(start) < Millis(8'500) + kLoad);
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

TEST_CASE("a claim whose reply is lost keeps the waiter's position and is granted once") {
  for_each_fault([](Fault fault) {
    Scene scene;
    Rlock holder = scene.direct({"run"}, scene.lasting());
    REQUIRE(holder.job().line() == "up");
    Rlock waiter = scene.through({"run", "-q", "-w", "30"}, scene.brief());
    REQUIRE(eventually([&] { return scene.waiting(1); }));
    scene.proxy().inject(RequestKind::claim, fault);
    TimePoint start = BootClock::now();
    scene.end_command();
    CHECK(holder.status() == 7);
    CHECK(waiter.status() == 7);
    CHECK(since(start) < Millis(5'000) + kLoad);
    CHECK(scene.proxy().injected() == 1);
    CHECK(waiter.errors() == "");
    auto newest_first = scene.history();
    auto end = scene.ran().find('\n');
    REQUIRE(end != std::string::npos);
    CHECK(newest_first == scene.ran().substr(end + 1) + scene.ran().substr(0, end + 1));
    CHECK(scene.ran().substr(0, end) < scene.ran().substr(end + 1));
    check_aftermath(scene, fault);
  });
}

TEST_CASE("a renewal whose reply is lost is repeated, and the command never notices") {
  for_each_fault([](Fault fault) {
    Scene scene;
    scene.proxy().inject(RequestKind::renew, fault);
    Rlock rlock = scene.through({"run", "-t", "20", "-k", "0.2", "--event-log", scene.event_log()},
                                scene.lasting());
    REQUIRE(rlock.job().line() == "up");
    CHECK(eventually([&] { return mentions(scene.events(), "\"renewed\""); }));
    CHECK(scene.proxy().injected() == 1);
    scene.end_command();
    CHECK(rlock.status() == 7);
    CHECK(rlock.errors() == "");
    check_one_run(scene);
    check_aftermath(scene, fault);
  });
}

// Each answer takes longer than the sixth of the lease that an attempt has from a quick server.
TEST_CASE("a renewal keeps the lease if every answer comes late") {
  Scene scene;
  scene.proxy().inject(RequestKind::any, Fault::late_reply, Often::always);
  Rlock rlock = scene.through({"run", "-q", "--connect-timeout", "8s", "-t", "7", "-k", "0",
                               "--event-log", scene.event_log()},
                              scene.lasting());
  REQUIRE(rlock.job().line() == "up");
  auto renewed_twice = [&] {
    std::string events = scene.events();
    return events.find("\"renewed\"") != events.rfind("\"renewed\"");
  };
  CHECK(eventually(renewed_twice));
  scene.end_command();
  CHECK(rlock.status() == 7);
  CHECK(rlock.errors() == "");
  check_one_run(scene);
}

TEST_CASE("a renewal that arrives after the release does not restore the lock") {
  Scene scene;
  scene.proxy().inject(RequestKind::renew, Fault::late_request, Often::always);
  Rlock rlock = scene.through({"run", "-t", "20"}, scene.lasting());
  REQUIRE(rlock.job().line() == "up");
  CHECK(eventually([&] { return scene.proxy().injected() > 0; }));
  scene.end_command();
  CHECK(rlock.status() == 7);
  CHECK(rlock.errors() == "");
  CHECK(scene.proxy().deliver() >= 1);
  CHECK(scene.leftovers() == "");
  check_one_run(scene);
}

TEST_CASE("if no renewal arrives, the command is dead before the lease expires") {
  for_each_fault([](Fault fault) {
    if (fault == Fault::late_reply) return;  // it may come through
    Scene scene;
    scene.proxy().inject(RequestKind::renew, fault, Often::always);
    Rlock rlock = scene.through({"run", "-t", "12"}, scene.lasting());
    REQUIRE(rlock.job().line() == "up");
    TimePoint lease_end = scene.lease_end();
    rlock.job().rest();
    REQUIRE(rlock.job().at_end());
    CHECK(rlock.job().ended_at() < lease_end);
    CHECK(rlock.status() == 76);
    CHECK(mentions(rlock.errors(), "rlock: lost \"" + scene.name() + "\" at 127.0.0.1:"));
    CHECK(mentions(rlock.errors(), "rlock stopped the command"));
    CHECK(scene.leftovers() == "");
    scene.proxy().deliver();
    CHECK(scene.leftovers() == "");
  });
}

namespace {

// What the listener of the lock's only holder takes for news: it renews at once.
void wake_holder(const Scene& scene, const std::string& owner) {
  server().cli({"RPUSH", scene.key("wake:" + owner), "1"});
}

// A run through the proxy that says its owner.
std::vector<std::string> saying_owner(const Scene& scene) {
  std::vector<std::string> words = scene.lasting();
  words[3] = "echo $RLOCK_OWNER; " + words[3];
  return words;
}

}  // namespace

TEST_CASE("a renewal that was on its way when an operator broke the lock is repeated immediately") {
  Scene scene;
  scene.proxy().inject(RequestKind::renew, Fault::late_reply);
  Rlock rlock = scene.through({"run", "-t", "1h"}, saying_owner(scene));
  const std::string owner = rlock.job().line();
  REQUIRE(rlock.job().line() == "up");
  wake_holder(scene, owner);
  REQUIRE(eventually([&] { return scene.proxy().injected() == 1; }));
  CHECK(scene.direct({"force-unlock", "--yes"}).status() == 0);
  CHECK(rlock.status() == 76);  // the next one would be due in 20 minutes
}

TEST_CASE("a renewal that is on its way at the release does not restore the lock") {
  Scene scene;
  scene.proxy().inject(RequestKind::renew, Fault::late_request);
  Rlock rlock = scene.through({"run", "-t", "1h"}, saying_owner(scene));
  const std::string owner = rlock.job().line();
  REQUIRE(rlock.job().line() == "up");
  wake_holder(scene, owner);
  REQUIRE(eventually([&] { return scene.proxy().injected() == 1; }));
  scene.end_command();
  CHECK(rlock.status() == 7);
  CHECK(scene.leftovers() == "");
  CHECK(scene.proxy().deliver() == 1);
  CHECK(scene.leftovers() == "");
}

TEST_CASE("a renewal never follows the release") {
  Scene scene;
  Rlock rlock = scene.through({"run", "-t", "1h"}, saying_owner(scene));
  const std::string owner = rlock.job().line();
  REQUIRE(rlock.job().line() == "up");
  wake_holder(scene, owner);
  REQUIRE(eventually([&] { return scene.proxy().renewals() == 1; }));
  // The first attempt takes a second, in which a thread that renews would act on a wake.
  scene.proxy().inject(RequestKind::release, Fault::late_request);
  scene.end_command();
  REQUIRE(eventually([&] { return scene.proxy().injected() == 1; }));
  wake_holder(scene, owner);
  CHECK(rlock.status() == 7);
  CHECK(scene.proxy().renewals() == 1);
}

TEST_CASE("a release whose reply is lost is repeated over a new connection, and counts once") {
  for_each_fault([](Fault fault) {
    Scene scene;
    scene.proxy().inject(RequestKind::release, fault);
    TimePoint start = BootClock::now();
    Rlock rlock = scene.through({"run"}, scene.brief());
    CHECK(rlock.status() == 7);
    CHECK(since(start) < Millis(5'000) + kLoad);
    CHECK(scene.proxy().injected() == 1);
    CHECK(rlock.errors() == "");
    check_one_run(scene);
    check_aftermath(scene, fault);
  });
}

TEST_CASE("a release without confirmation is abandoned in time and reported") {
  for_each_fault([](Fault fault) {
    if (fault == Fault::late_reply) return;  // it is confirmed
    Scene scene;
    scene.proxy().inject(RequestKind::release, fault, Often::always);
    TimePoint start = BootClock::now();
    Rlock rlock = scene.through({"run", "-t", "8"}, scene.brief());
    CHECK(rlock.status() == 7);
    CHECK(since(start) < Millis(5'000) + kLoad);
    CHECK(scene.proxy().injected() > 1);
    CHECK(mentions(rlock.errors(), "warning: \"" + scene.name() + "\" at 127.0.0.1:"));
    CHECK(mentions(rlock.errors(), "the server did not confirm the release"));
    // What the message says: the lock is free when its lease ends, at the latest.
    Rlock next = scene.direct({"run", "-q", "-w", "30"}, scene.brief());
    CHECK(next.status() == 7);
    scene.proxy().deliver();
    CHECK(scene.leftovers() == "");
  });
}
