// The same for those who wait, for operators and for separate steps.
#include <doctest/doctest.h>
#include <signal.h>

#include "faults/scene.hpp"

using namespace rlock;
using namespace rlock::test;

namespace {

// What one request of a command that is no run takes at most: the connect timeout and 3 s.
constexpr Millis kOneRequest{5'000};

}  // namespace

TEST_CASE("a timed-out wait leaves nothing on the server, even if its cancel is lost") {
  for_each_fault([](Fault fault) {
    Scene scene;
    Rlock holder = scene.direct({"run"}, scene.lasting());
    REQUIRE(holder.job().line() == "up");
    scene.proxy().inject(RequestKind::cancel, fault);
    TimePoint start = BootClock::now();
    Rlock waiter = scene.through({"run", "-w", "1"}, scene.brief());
    CHECK(waiter.status() == 75);
    CHECK(since(start) < Millis(1'000 + 5'000) + kLoad);
    CHECK(scene.proxy().injected() == 1);
    CHECK(mentions(waiter.errors(), "\"" + scene.name() + "\" at 127.0.0.1:"));
    CHECK(mentions(waiter.errors(), "is still busy after "));
    CHECK(eventually([&] { return scene.waiting(0); }));
    CHECK(scene.count("alive") == "0");
    if (fault == Fault::late_request) CHECK(scene.proxy().deliver() == 1);
    scene.end_command();
    CHECK(holder.status() == 7);
    CHECK(holder.errors() == "");
    check_one_run(scene);
    CHECK(scene.leftovers() == "");
  });
}

TEST_CASE("a signal stops the wait within bounds, even if the cancel is lost") {
  for_each_fault([](Fault fault) {
    Scene scene;
    Rlock holder = scene.direct({"run"}, scene.lasting());
    REQUIRE(holder.job().line() == "up");
    scene.proxy().inject(RequestKind::cancel, fault);
    Rlock waiter = scene.through({"run"}, scene.brief());
    REQUIRE(eventually([&] { return scene.waiting(1); }));
    TimePoint start = BootClock::now();
    send_signal(waiter.job().pid(), SIGTERM);
    CHECK(waiter.status() == 128 + SIGTERM);
    CHECK(since(start) < Millis(5'000) + kLoad);
    CHECK(eventually([&] { return scene.waiting(0); }));
    if (fault == Fault::late_request) CHECK(scene.proxy().deliver() == 1);
    scene.end_command();
    CHECK(holder.status() == 7);
    check_one_run(scene);
    CHECK(scene.leftovers() == "");
  });
}

TEST_CASE("a force-unlock whose reply is lost breaks only the holder that it showed, and says so") {
  for_each_fault([](Fault fault) {
    Scene scene;
    Rlock holder = scene.direct({"run"}, scene.lasting());
    REQUIRE(holder.job().line() == "up");
    Rlock next = scene.direct({"run", "-q", "-w", "60"}, scene.lasting());
    REQUIRE(eventually([&] { return scene.waiting(1); }));
    scene.proxy().inject(RequestKind::force_unlock, fault);
    TimePoint start = BootClock::now();
    Rlock operators = scene.through({"force-unlock", "--yes", "--now", "--reason", "3 a.m."});
    std::string said = operators.job().rest(Millis(60'000));
    CHECK(operators.status() == 0);
    CHECK(since(start) < kOneRequest + kLoad);
    CHECK(scene.proxy().injected() == 1);
    CHECK(mentions(said, "broke \"" + scene.name() + "\""));
    CHECK(mentions(said, "  was held by "));
    CHECK(holder.status() == 76);
    CHECK(mentions(holder.errors(), "3 a.m."));
    // Late or twice, it must not hit the one who came next.
    REQUIRE(next.job().line() == "up");
    if (fault == Fault::late_request) CHECK(scene.proxy().deliver() == 1);
    scene.end_command();
    CHECK(next.status() == 7);
    CHECK(next.errors() == "");
    CHECK(scene.leftovers() == "");
  });
}

TEST_CASE("steps whose reply is lost are repeated over a new connection, and count once") {
  for_each_fault([](Fault fault) {
    for (RequestKind moment : {RequestKind::renew, RequestKind::release}) {
      Scene scene;
      Rlock acquire = scene.direct({"acquire", "--ttl", "1m"});
      std::string owner = acquire.job().line();
      REQUIRE(acquire.status() == 0);
      scene.proxy().inject(moment, fault);
      TimePoint start = BootClock::now();
      Rlock step =
          scene.through({moment == RequestKind::renew ? "renew" : "release", "--owner", owner});
      CHECK(step.status() == 0);
      CHECK(since(start) < 2 * kOneRequest + kLoad);  // renew asks how the lock is held, too
      CHECK(step.errors() == "");
      CHECK(scene.proxy().injected() == 1);
      if (moment == RequestKind::renew) {
        Rlock release = scene.direct({"release", "--owner", owner});
        CHECK(release.status() == 0);
      }
      CHECK(scene.history() == scene.last_grant() + "\n");
      check_aftermath(scene, fault);
    }
  });
}
