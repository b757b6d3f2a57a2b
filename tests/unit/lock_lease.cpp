#include <doctest/doctest.h>

#include "lock/lease.hpp"

using namespace std::chrono_literals;
using namespace rlock;
using namespace rlock::lock;

namespace {

constexpr TimePoint kStart{1000s};

LeaseMonitor monitor(Millis ttl, Millis kill_after, Watchdog watchdog = Watchdog::renew) {
  return LeaseMonitor({ttl, kill_after, watchdog}, kStart, kStart);
}

}  // namespace

TEST_CASE("the deadline counts from before the request, less the drift") {
  CHECK(lease_deadline(kStart, 30s) == kStart + 30s - 300ms - 2ms);
  CHECK(lease_deadline(kStart, 1s) == kStart + 1s - 10ms - 2ms);
}

TEST_CASE(
    "if a replica may take over, each lease expires earlier by the possible clock difference") {
  const LeaseMonitor lease({30s, 5s, Watchdog::renew, timing::replica_clock_gap(30s)}, kStart,
                           kStart);
  CHECK(lease.deadline() == lease_deadline(kStart, 30s) - 1s);
  CHECK(lease.guard_kill_at() < lease.deadline());
  CHECK(timing::replica_clock_gap(5s) == 500ms);
  CHECK(2 * timing::confirmation_time(5s) <= timing::least_renewal(5s));
}

TEST_CASE("margins are a fifth of the ttl between 250 ms and 2 s") {
  CHECK(timing::kill_margin(1s) == 250ms);
  CHECK(timing::kill_margin(5s) == 1s);
  CHECK(timing::kill_margin(30s) == 2s);
}

TEST_CASE("a lease is renewed every third of the ttl") {
  auto lease = monitor(30s, 5s);
  CHECK(lease.next_attempt() == kStart + 10s);
  lease.renewed(kStart + 10s, kStart + 10s);
  CHECK(lease.next_attempt() == kStart + 20s);
  CHECK(lease.deadline() == lease_deadline(kStart + 10s, 30s));
}

TEST_CASE("a lease of more than 30 s is renewed as often as one of 30 s") {
  for (Millis ttl : {60s, 600s}) {
    auto lease = monitor(ttl, 5s);
    CHECK(lease.next_attempt() == kStart + 10s);
  }
  CHECK(timing::renew_interval(1s) == 333ms);
}

namespace {

// Whether a lease is renewed in time if no server answers from `begin` until `end`: each attempt is
// refused at once, or never answered. Renewals that nothing delays precede.
bool survives(const LeaseMonitor::Settings& settings, Nanos begin, Nanos length, bool refused) {
  LeaseMonitor lease(settings, kStart, kStart);
  const TimePoint from = kStart + begin;
  const TimePoint until = from + length;
  while (true) {
    const TimePoint sent_at = lease.next_attempt();
    if (sent_at >= lease.terminate_at()) return false;
    if (sent_at >= until) return true;
    if (sent_at < from) {
      lease.renewed(sent_at, sent_at);
    } else {
      // A packet that is lost is sent again after a second, and then ever later.
      TimePoint answer = refused ? TimePoint::max() : sent_at;
      for (Nanos again = 1s; answer < until; again *= 2) answer = sent_at + 2 * again - 1s;
      const TimePoint gives_up = refused ? sent_at : lease.attempt_deadline(sent_at);
      if (answer < std::min(gives_up, lease.terminate_at())) return true;
      lease.failed(sent_at, gives_up);
    }
  }
}

}  // namespace

TEST_CASE("an outage of the stated length is survived whenever it begins, one of a lease is not") {
  for (Millis ttl : {1000ms, 3000ms, 10'000ms, 30'000ms, 60'000ms, 300'000ms}) {
    for (Millis kill_after : {0ms, 100ms, 5000ms, 15'000ms}) {
      const LeaseMonitor::Settings settings{ttl, kill_after};
      const Millis stated = survived_outage(settings);
      CAPTURE(ttl.count());
      CAPTURE(kill_after.count());
      const Nanos interval = timing::renew_interval(ttl);
      for (int part = 1; part <= 50; ++part) {
        for (bool refused : {true, false}) {
          CHECK(survives(settings, interval * part / 50, stated, refused));
          CHECK_FALSE(survives(settings, interval * part / 50, ttl, refused));
        }
      }
      // Nothing is given away: with what remains of a renewal, and of a second, it is not survived.
      const Nanos more = stated + timing::renewal_after_outage(ttl) + 1s;
      CHECK_FALSE(survives(settings, interval, more, true));
    }
  }
  CHECK(survived_outage({30s, 5s}) == 11s);
  CHECK(survived_outage({60s, 5s}) == 40s);
  CHECK(survived_outage({60s, 15s}) == 30s);
  CHECK(survived_outage({300s, 5s}) == 278s);
  CHECK(survived_outage({1s, 166ms}) == 23ms);
}

TEST_CASE("after the lease expired, failed renewals are no longer retried quickly") {
  auto lease = monitor(1s, 0s);
  TimePoint now = kStart + 2s;
  for (int i = 0; i < 10; ++i) lease.failed(now, now);
  CHECK(lease.next_attempt() == now + 500ms);
}

TEST_CASE("failed renewals are retried immediately, then ever more slowly") {
  auto lease = monitor(30s, 5s);
  TimePoint now = kStart + 10s;
  Millis before{0};
  for (int i = 0; i < 20; ++i) {
    lease.failed(now, now);
    auto gap = std::chrono::duration_cast<Millis>(lease.next_attempt() - now);
    CHECK(gap >= before);
    CHECK(gap <= 500ms);
    before = gap;
    now = lease.next_attempt();
  }
  CHECK(before == 500ms);
  CHECK(lease.deadline() == lease_deadline(kStart, 30s));
  lease.renewed(now, now);
  lease.failed(now, now);
  CHECK(lease.next_attempt() - now <= 10ms);
}

TEST_CASE("TERM, rlock's kill, the guard's kill and the deadline come in this order") {
  for (Millis ttl : {1000ms, 1500ms, 3000ms, 30'000ms, 900'000ms}) {
    for (Millis grace : {0ms, 100ms, 5000ms, 600'000ms}) {
      auto lease = monitor(ttl, grace);
      CHECK(lease.next_attempt() < lease.terminate_at());
      CHECK(lease.terminate_at() <= lease.kill_at());
      CHECK(lease.kill_at() < lease.guard_kill_at());
      CHECK(lease.guard_kill_at() < lease.deadline());
    }
  }
}

TEST_CASE("a long --kill-after leaves half of the lease to renew in") {
  CHECK(monitor(30s, 600s).terminate_at() == kStart + 15s);
  CHECK(monitor(30s, 5s).terminate_at() == monitor(30s, 5s).kill_at() - 5s);
}

TEST_CASE("a --kill-after that does not fit into a lease without a watchdog leaves half of it") {
  for (Millis grace : {8s, 30s, 600s}) {
    CHECK(monitor(10s, grace, Watchdog::none).terminate_at() == kStart + 5s);
  }
}

TEST_CASE("without a watchdog nothing is renewed") {
  auto lease = monitor(30s, 5s, Watchdog::none);
  CHECK(lease.next_attempt() == TimePoint::max());
  CHECK(lease.kill_at() == kStart + 30s - 302ms - 2s);
}

TEST_CASE("a renewal that is answered late never moves the deadline back") {
  auto lease = monitor(30s, 5s);
  lease.renewed(kStart + 12s, kStart + 12s);
  lease.renewed(kStart + 10s, kStart + 10s);
  CHECK(lease.deadline() == lease_deadline(kStart + 12s, 30s));
}

TEST_CASE("an attempt that took all its time doubles the next one's") {
  auto lease = monitor(60s, 5s);
  TimePoint now = kStart + 20s;
  for (Millis limit : {2s, 4s, 8s}) {
    CHECK(lease.attempt_deadline(now) == now + limit);
    lease.failed(now, now + limit);
    now += limit;
  }
  // An error that comes at once says nothing about the server's speed, and changes nothing.
  lease.failed(now, now + 1s);
  // Others may take a dead server's place: there is time to ask again.
  CHECK(lease.attempt_deadline(now) == now + (lease.terminate_at() - now) / 2);
  for (Millis late : {-1s, 0s, 30s}) {
    now = lease.terminate_at() + late;
    CHECK(lease.attempt_deadline(now) == now + 2s);
  }
  lease.renewed(now, now + 10ms);
  CHECK(lease.attempt_deadline(now) == now + 2s);
}

TEST_CASE("a server that takes long for each answer is given that time") {
  LeaseMonitor lease({6s, 1s}, kStart, kStart + 1200ms);
  for (int i = 0; i < 5; ++i) {
    TimePoint sent_at = lease.next_attempt();
    TimePoint answered_at = sent_at + 1200ms;
    REQUIRE(answered_at < lease.attempt_deadline(sent_at));
    REQUIRE(answered_at < lease.terminate_at());
    lease.renewed(sent_at, answered_at);
  }
  // One answer that took most of the lease does not make the next attempt the only one.
  TimePoint sent_at = lease.next_attempt();
  lease.renewed(sent_at, sent_at + 5s);
  CHECK(lease.attempt_deadline(sent_at) == sent_at + 2s);
}

TEST_CASE("a grant that some servers have not confirmed is renewed immediately, and soon again") {
  auto lease = monitor(30s, 5s);
  TimePoint now = kStart + 50ms;
  lease.complete_grant(now);
  for (auto pause : {1s, 2s, 4s, 8s, 10s, 10s}) {
    REQUIRE(lease.next_attempt() == now);
    lease.renewed(now, now);
    now += pause;
  }
  auto brief = monitor(1s, 0s);
  brief.complete_grant(kStart);
  CHECK(brief.next_attempt() == kStart);
  brief.renewed(kStart, kStart);
  CHECK(brief.next_attempt() == kStart + 333ms);
  // After a second, when a failover may have lost it.
  auto later = monitor(30s, 5s);
  later.complete_grant(kStart + 1s);
  now = kStart + 1s;
  for (auto pause : {1s, 2s, 4s, 8s, 10s}) {
    REQUIRE(later.next_attempt() == now);
    later.renewed(now, now);
    now += pause;
  }
  auto never = monitor(30s, 5s, Watchdog::none);
  never.complete_grant(kStart);
  CHECK(never.next_attempt() == TimePoint::max());
}
