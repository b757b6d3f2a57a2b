// The queue: order, wakes, heartbeats, mass death.
#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;

void first_come_first_served(Lab& lab) {
  lock::Token last = lab.granted('A');
  for (char owner : {'B', 'C', 'D'}) lab.queued(owner);
  need(lab.waiters() == "BCD", "not in order");
  for (char owner : {'B', 'C', 'D'}) {
    lab.release(static_cast<char>(owner - 1));
    need(lab.woken(owner), "the next one is not woken");
    lock::Token token = lab.granted(owner);
    need(token > last, "tokens do not increase");
    last = token;
  }
}

// A resent acquire changes nothing.
void resent_acquire(Lab& lab) {
  lock::Token token = lab.granted('A');
  need(lab.granted('A') == token, "a resent acquire gets another token");
  need(lab.inspect().holders.at(0).entries == 1, "a resent acquire is a second entry");
  lock::Ticket ticket = lab.queued('B').ticket;
  need(lab.queued('B').ticket == ticket, "a resent acquire gets another ticket");
  lab.release('A');
  need(lab.holders() == "B", "B is not granted in place");
}

void no_wait_leaves_nothing(Lab& lab) {
  Ask now;
  now.queueing = lock::Queueing::never;
  lab.granted('A');
  const auto busy = as<lock::Busy>(lab.acquire('B', now), "not busy");
  need(busy.holder && busy.holder->record == "record of A", "the holder is not named");
  lab.queued('C');
  lab.release('A');
  as<lock::Busy>(lab.acquire('B', now), "overtakes a granted waiter");
  need(lab.waiters().empty() && lab.holders() == "C", "left something");
}

void max_queue_leaves_nothing(Lab& lab) {
  Ask one;
  one.max_queue = 1;
  lab.granted('A');
  lab.queued('B', one);
  need(as<lock::Busy>(lab.acquire('C', one), "not busy").waiters == 1, "waiters not counted");
  lab.queued('B', one);
  need(lab.waiters() == "B", "left something");
}

// Each waiter's heartbeat counts from its own last look, by the server's clock.
void independent_deadlines(Lab& lab) {
  lab.granted('A');
  auto due = [&](char owner) {
    return std::stoll(lab.cli({"ZSCORE", lab.key("alive"), Lab::owner(owner).text()}));
  };
  lab.queued('B');
  const long long first = due('B');
  lab.pass(5s);
  lab.queued('C');
  need(due('C') == first + 5'000, "a heartbeat counts from another waiter's");
  need(due('B') == first, "another waiter's look moves a heartbeat");
  lab.pass(3s);
  lab.queued('B');
  need(due('B') == first + 8'000 && due('C') == first + 5'000, "heartbeats stack");
}

// 10,000 waiters died; the one alive behind them is served at once.
void ten_thousand_dead(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.cancel('B');
  constexpr const char* kCrowd = R"(
    for i = 1, 10000 do
      local owner = string.format('%032x', i)
      redis.call('ZADD', KEYS[1], i, owner)
      redis.call('ZADD', KEYS[2], 1, owner)
      redis.call('HSET', KEYS[3], owner, 'x', '+' .. owner, '1 waiting 1 0 0 30000 0 1')
    end)";
  lab.cli({"EVAL", kCrowd, "3", lab.key("queue"), lab.key("alive"), lab.key("who")});
  lab.queued('Z');
  lab.release('A');
  lab.granted('Z');
  need(lab.inspect().live_waiters == 0, "the dead still wait");
  need(lab.cli({"ZCARD", lab.key("queue")}) == "0", "the dead are still queued");
}

// The scripts remember who was the head, or every call would wake the next one again.
void new_head_is_nudged_once(Lab& lab) {
  lock::Token token = lab.granted('A');
  lab.queued('B');
  lab.queued('C');
  lab.cancel('B');
  need(lab.woken('C'), "the new head is not woken");
  as<lock::Renewal>(lab.renew('A', token), "not renewed");
  need(!lab.woken('C'), "the head is woken though nothing has changed");
}

// The hand-over's receiver is dead.
void head_dies_after_the_hand_over(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.queued('C');
  lab.release('A');
  need(lab.woken('C'), "the new head does not know that the end moved");
  const auto waiting = lab.queued('C');
  need(waiting.position == 1 && waiting.look_again && *waiting.look_again <= 2s, "looks too late");
  lab.pass(*waiting.look_again);
  lab.granted('C');
}

// Holder and head die together: the next waiter finds out by itself.
void holder_and_head_die(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  const auto waiting = lab.queued('C');
  need(waiting.look_again && *waiting.look_again <= 30s + 50ms, "looks too late");
  lab.pass(*waiting.look_again);
  need(!std::holds_alternative<lock::OwnerEnded>(lab.acquire('C')), "gone");
  lab.pass(2001ms);
  lab.granted('C');
}

void expiry_grants_the_head(Lab& lab) {
  lab.granted('A');
  const auto waiting = lab.queued('B');
  need(waiting.look_again == 30s, "the head does not know when the lease ends");
  lab.pass(30s);
  lab.granted('B');
}

// Waiters of a dead host vanish by themselves.
void dead_waiters_vanish(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.pass(10s);
  lab.queued('C');
  lab.pass(6s);
  need(lab.waiters() == "C", "a dead waiter is shown");
  lab.release('A');
  need(lab.holders() == "C", "a dead waiter is in the way");
}

// As long as the clock shows the very millisecond in which its heartbeat ends it is in time.
void last_millisecond(Lab& lab) {
  Ask longer;
  longer.ttl = 60s;
  lab.granted('A', longer);
  const lock::Ticket place = lab.queued('B').ticket;
  lab.pass(1s);
  lab.queued('C');
  lab.pass(14s);
  const lock::Queued again = lab.queued('B');
  need(again.ticket == place && again.position == 1, "B lost its place");
  need(lab.waiters() == "BC", "C overtakes B");
}

// One missed claim costs nothing, the second one the place.
void missed_claims(Lab& lab) {
  lab.granted('A');
  Ask again;
  again.ticket = lab.queued('B').ticket;
  lab.queued('C');
  lab.queued('D');
  lab.release('A');
  lab.pass(2001ms);
  lab.granted('C');
  lab.queued('B', again);
  need(lab.waiters() == "BD", "one missed claim cost the place");
  lab.release('C');
  lab.pass(2001ms);
  lab.granted('D');
  lab.queued('E');
  lab.queued('B', again);
  need(lab.waiters() == "EB", "a second missed claim kept the place");
  lab.cancel('B');
  lab.cli({"DEL", lab.key("released")});
  lab.queued('B', again);
  need(lab.waiters() == "BE", "the ticket of a waiter that the server forgot is not kept");
}

// A wake left over from before changes nothing.
void stale_wakes(Lab& lab) {
  lab.granted('A');
  lab.cli({"RPUSH", lab.key("wake:" + Lab::owner('B').text()), "granted"});
  lab.queued('B');
  need(lab.woken('B'), "no wake");
  lab.queued('B');
  need(lab.holders() == "A", "a stale wake granted something");
}

// The wake is kept for a waiter that has asked but does not block yet.
void wake_before_the_block(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.release('A');
  lock::SystemPoller poller;
  auto wake = lock::finish(poller, lab.store().wait_for_wake(lab.name(), Lab::owner('B'), 30s),
                           poller.now() + 30s, "lab");
  need(wake && *wake == lock::Wake::woken, "the wake is lost");
}

// Else the dead are no longer found, and their lines stay.
void queue_lives_as_long_as_who(Lab& lab) {
  auto end = [&](const char* suffix) {
    return std::stoll(lab.cli({"PEXPIRETIME", lab.key(suffix)}));
  };
  auto check = [&](const std::string& when) {
    const bool lives = end("queue") >= end("who") && end("alive") >= end("who");
    need(lives, "the queue ends before the lines, " + when);
  };
  Ask ask;
  ask.ttl = 10min;
  lab.granted('A', ask);
  lab.queued('B', ask);
  lab.queued('C');
  check("as one joins");
  lab.queued('C');
  check("as one asks again");
  lab.pass(5s);
  lab.release('A');
  lab.granted('B', ask);
  check("as one claims");
  lab.queued('C');
  check("behind a later holder");
  const auto long_end = end("who");
  lab.cancel('C');
  lab.cli({"DEL", lab.key("released")});
  lab.queued('D');
  check("as one joins anew");
  need(end("who") >= long_end, "the lines end before the holder's");
}

// The server gets a request of a waiter a second time, while the waiter blocks.
void late_copy_makes_the_head(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.queued('C');
  lab.pass(14s);
  lab.queued('C');
  lab.pass(2s);
  lab.queued('C');
  need(lab.woken('C'), "the new head sleeps on");
  lab.queued('C');
  need(!lab.woken('C'), "it is woken again");
}

// And once more, which the server granted the lock but did not reach.
void lines_of_waiters_deleted(Lab& lab) {
  lab.granted('A');
  Ask again;
  again.ticket = lab.queued('B').ticket;
  lab.queued('C');
  lab.queued('D');
  lab.cli({"DEL", lab.key("who")});
  lab.queued('D');
  lab.release('A');
  need(lab.woken('B') && lab.waiters().find('D') != std::string::npos, "B is passed by");
  const lock::Token token = lab.granted('B', again);
  lab.queued('C');
  need(lab.waiters() == "CD", "a place is lost");
  lab.release('B');
  lab.cli({"DEL", lab.key("who")});
  need(lab.granted('C') > token, "a grant is lost with its line");
  need(lab.holders() == "C", "C does not hold it");
  lab.cli({"DEL", "clock"});
  need(lab.fingerprint().find(" false") == std::string::npos, "a key lives for ever");
}

// Else it is lost at its first renewal.
void lines_live_as_long_as_the_lease(Lab& lab) {
  Ask ask;
  ask.ttl = 10min;
  lab.granted('A');
  lab.queued('B', ask);
  lab.release('A');
  lab.granted('B', ask);
  auto end = [&](const char* suffix) {
    return std::stoll(lab.cli({"PEXPIRETIME", lab.key(suffix)}));
  };
  for (const char* suffix : {"holders", "limits", "who"}) {
    need(end(suffix) >= lab.now() + 10 * 60'000, std::string(suffix) + " ends before the lease");
  }
}

void memory_lives_from_the_last_use(Lab& lab) {
  lab.granted('A');
  lab.release('A');
  lab.pass(2h);
  lab.granted('B');
  lab.release('B');
  const int64_t days = 24 * 3'600'000;
  for (const char* suffix : {"meta", "history"}) {
    need(std::stoll(lab.cli({"PEXPIRETIME", lab.key(suffix)})) >= lab.now() + 30 * days,
         std::string(suffix) + " ends less than 30 days after its last use");
  }
  Ask longer;
  longer.ttl = 40 * 24h;
  lab.granted('C', longer);
  need(std::stoll(lab.cli({"PEXPIRETIME", lab.key("meta")})) >= lab.now() + 40 * days,
       "the memory ends before the lease");
}

// One holder goes on while waiters come, replace one another, and die.
void who_stays_small(Lab& lab) {
  const lock::Token token = lab.granted('A');
  Ask ask;
  ask.supersede = lock::Supersede{};
  int few = 0;
  for (char owner = 'B'; owner < 'B' + 40; ++owner) {
    ask.attempt = static_cast<uint64_t>(owner % 2);
    lab.queued(owner, ask);
    for (int i = 0; i < 4; ++i) {
      lab.pass(i == 0 ? 5s : 25s);
      as<lock::Renewal>(lab.renew('A', token), "lost");
      if (i == 0) lab.queued(++owner, ask);
    }
    const int fields = std::stoi(lab.cli({"HLEN", lab.key("who")}));
    if (owner < 'B' + 10) few = std::max(few, fields);
    need(owner < 'B' + 10 || fields <= few, "what is known of those that are gone adds up");
  }
}

void every_key_expires(Lab& lab) {
  lab.granted('A');
  lab.cli({"DEL", "clock"});
  need(lab.fingerprint().find(" false") == std::string::npos, "a key lives for ever");
  lab.pass(0s);
  lab.queued('B');
  lab.queued('C');
  lab.cancel('C', lock::CancelHow::removed);
  lab.force();
  lab.release('A');
  lab.granted('B');
  lab.cli({"DEL", "clock"});
  need(lab.fingerprint().find(" false") == std::string::npos, "a key lives for ever");
}

void overdue_tombstones(Lab& lab) {
  for (char owner : {'A', 'B', 'C'}) {
    lab.granted(owner);
    lab.release(owner);
    lab.pass(40s);
  }
  need(lab.cli({"ZCARD", lab.key("released")}) == "2", "a tombstone stays though it is overdue");
}

}  // namespace

const std::vector<NamedCase>& crowd_cases() {
  static const std::vector<NamedCase> cases{
      {"first come, first served, tokens increase", first_come_first_served},
      {"a resent acquire changes nothing", resent_acquire},
      {"a refused wait leaves nothing", no_wait_leaves_nothing},
      {"a full queue leaves nothing", max_queue_leaves_nothing},
      {"waiters' deadlines are independent and never stack", independent_deadlines},
      {"the one alive behind 10,000 dead is served at once", ten_thousand_dead},
      {"a waiter that a late copy of its request makes the head is woken",
       late_copy_makes_the_head},
      {"a new head is woken once", new_head_is_nudged_once},
      {"the receiver of a hand-over dies", head_dies_after_the_hand_over},
      {"holder and head die", holder_and_head_die},
      {"an ended lease serves the head", expiry_grants_the_head},
      {"dead waiters vanish", dead_waiters_vanish},
      {"a waiter that asks in the last millisecond of its heartbeat keeps its place",
       last_millisecond},
      {"one missed claim keeps the place, a second does not", missed_claims},
      {"stale wakes are harmless", stale_wakes},
      {"a wake before the block is not lost", wake_before_the_block},
      {"every key expires", every_key_expires},
      {"the queue lives as long as the lines of those who wait", queue_lives_as_long_as_who},
      {"waiters whose lines were deleted keep their places", lines_of_waiters_deleted},
      {"after a claim the lines live as long as the lease", lines_live_as_long_as_the_lease},
      {"the memory lives 30 days from the last use", memory_lives_from_the_last_use},
      {"those who came and went leave nothing behind one who stays", who_stays_small},
      {"overdue tombstones are removed", overdue_tombstones},
  };
  return cases;
}

}  // namespace rlock::contract
