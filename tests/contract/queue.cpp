// The queue: order, wakes, heartbeats, mass death; those far from the head, which ask less often.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>

#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;

CASE("waiters are served in order of arrival, and tokens increase") {
  lock::Token last = lab.granted('A');
  lab.play("BCD queued; BCD wait");
  for (char owner : {'B', 'C', 'D'}) {
    lab.release(static_cast<char>(owner - 1));
    need(lab.woken(owner), "the next one is not woken");
    lock::Token token = lab.granted(owner);
    need(token > last, "tokens do not increase");
    last = token;
  }
}
MUTANT("the queue serves the last waiter first",
       {"call('ZRANGE', QUEUE, 0, 0)[1]", "call('ZRANGE', QUEUE, -1, -1)[1]"});

// A resent acquire changes nothing.
CASE("a resent acquire changes nothing") {
  lock::Token token = lab.granted('A');
  need(lab.granted('A') == token, "a resent acquire gets another token");
  need(lab.inspect().holders.at(0).entries == 1, "a resent acquire is a second entry");
  lock::Ticket ticket = lab.queued('B').ticket;
  need(lab.queued('B').ticket == ticket, "a resent acquire gets another ticket");
  lab.play("A released; B holds");
}

CASE("a refused wait leaves nothing") {
  Ask now;
  now.queueing = lock::Queueing::never;
  lab.granted('A');
  const auto busy = as<lock::Busy>(lab.acquire('B', now), "not busy");
  const lock::Holder* holder = lock::holder_in(busy.obstacle);
  need(holder != nullptr && holder->record == "record of A", "the holder is not named");
  lab.play("C queued; A released; B busy; nobody waits; C holds");
}
MUTANT("a refusal does not name the holder",
       {"waiters = waiters, holder = M.views.obstacle(request.may_pass)", "waiters = waiters"});
MUTANT("a refused run joins the queue", {"args.at_once or full", "full"});

CASE("a full queue leaves nothing") {
  Ask one;
  one.max_queue = 1;
  lab.play("A granted; B queued max-queue=1");
  need(as<lock::Busy>(lab.acquire('C', one), "not busy").waiters == 1, "waiters not counted");
  lab.play("B queued max-queue=1; B waits");
}
MUTANT("a newcomer joins a full queue",
       {"local full = waiters >= request.max_queue", "local full = false"});

// Each waiter's heartbeat counts from its own last look, by the server's clock.
CASE("waiters' deadlines are independent and never stack") {
  lab.granted('A');
  auto due = [&](char owner) {
    return std::stoll(lab.cli({"ZSCORE", lab.key("alive"), Lab::owner(owner).text()}));
  };
  lab.queued('B');
  const long long first = due('B');
  lab.play("5s pass; C queued");
  need(due('C') == first + 5'000, "a heartbeat counts from another waiter's");
  need(due('B') == first, "another waiter's look moves a heartbeat");
  lab.play("3s pass; B queued");
  need(due('B') == first + 8'000 && due('C') == first + 5'000, "heartbeats stack");
}
MUTANT("acquire does not renew a heartbeat", {"if ticket then M.queue.beat(owner) end", ""});

CASE("a waiter that is late by half of its slice is shown as silent") {
  lab.play("A granted; B queued; 7500ms pass");
  need(lab.inspect().waiters.at(0).silent == 0ms, "silent too early");
  lab.pass(1ms);
  need(lab.inspect().waiters.at(0).silent == 7'501ms, "not silent");
  lab.play("B queued");
  need(lab.inspect().waiters.at(0).silent == 0ms, "silent after a heartbeat");
}
MUTANT("inspect shows no silence", {"silent > 5000 * slices * 3 / 2 and silent or 0", "0"});

// 10,000 waiters died; the one alive behind them is served at once.
CASE("a live waiter behind 10,000 dead ones is served immediately") {
  lab.play("A granted; B queued; B cancelled");
  constexpr const char* kCrowd = R"(
    for i = 1, 10000 do
      local owner = string.format('%032x', i)
      redis.call('ZADD', KEYS[1], i, owner)
      redis.call('ZADD', KEYS[2], 1, owner)
      redis.call('HSET', KEYS[3], owner,
                 'state=waiting limit=1 token=0 since=0 ttl=30000 min_hold=0 responsive=1 | x')
    end)";
  lab.cli({"EVAL", kCrowd, "3", lab.key("queue"), lab.key("alive"), lab.key("who")});
  lab.play("Z queued; A released; Z granted");
  need(lab.inspect().live_waiters == 0, "the dead still wait");
  need(lab.cli({"ZCARD", lab.key("queue")}) == "0", "the dead are still queued");
}
MUTANT("a sweep that is not finished does not ask for another",
       {"must_retry = must_retry or #gone == 256", ""}, {"  must_retry = true\nend", "end"});

// The scripts remember who was the head, or every call would wake the next one again.
CASE("a new head is woken once") {
  lab.play("A granted; BC queued; B asleep; B cancelled; C woken; A renewed; C asleep");
}
MUTANT("the memory does not store the new head", {"memory.head = head or NOBODY", ""});
MUTANT("the memory does not store the first waiter as the head",
       {"if call('ZCARD', QUEUE) > 0 then", "if at_start.waiters > 0 then"});

// The hand-over's receiver is dead.
CASE("if the receiver of a hand-over dies, the next waiter is served") {
  lab.play("A granted; BC queued; A released; C woken");
  const auto waiting = lab.queued('C');
  need(waiting.position == 1 && waiting.look_again && *waiting.look_again <= 2s, "looks too late");
  lab.pass(*waiting.look_again);
  lab.granted('C');
}
MUTANT("the script does not wake the new head", {"M.wakes.add(head, 'look')", ""});
MUTANT("the script does not sweep an expired lease", {"at_start.first_end <= now or", ""});

// Holder and head die together: the next waiter finds out by itself.
CASE("if holder and head die, the next waiter is served") {
  lab.play("A granted; B queued");
  const auto waiting = lab.queued('C');
  need(waiting.look_again && *waiting.look_again <= 30s + 50ms, "looks too late");
  lab.pass(*waiting.look_again);
  need(!lock::refusal_in<lock::OwnerEnded>(lab.acquire('C')), "gone");
  lab.play("2001ms pass; C granted");
}

CASE("an expired lease serves the head") {
  lab.granted('A');
  const auto waiting = lab.queued('B');
  need(waiting.look_again == 30s, "the head does not know when the lease ends");
  lab.play("30s pass; B granted");
}

// Waiters of a dead host vanish by themselves.
CASE("dead waiters are removed") {
  lab.play("A granted; B queued; 10s pass; C queued; 6s pass; C waits; A released; C holds");
}
MUTANT("admit grants the lock to a dead head",
       {"at_start.beats > 0 and call('ZCOUNT', ALIVE, '-inf', now) > 0 or", ""},
       {"if beat_ends <= now then", "if false then"},
       {"math.floor(beat_ends) - now <= 15000 * (M.beats.slices_of(beat_ends) - 1)", "false"});

// As long as the clock shows the very millisecond in which its heartbeat ends it is in time.
CASE("a waiter that asks in the last millisecond of its heartbeat keeps its position") {
  lab.play("A granted ttl=60s");
  const lock::Ticket place = lab.queued('B').ticket;
  lab.play("1s pass; C queued; 14s pass");
  const lock::Queued again = lab.queued('B');
  need(again.ticket == place && again.position == 1, "B lost its place");
  lab.play("BC wait");
}
MUTANT("the sweep removes a waiter that asks in its last millisecond",
       {"if ticket then M.queue.beat(owner) end",
        "if ticket and tonumber(call('ZSCORE', ALIVE, owner)) > now then M.queue.beat(owner) end"});

// One missed claim costs nothing, the second one the place.
CASE("a waiter keeps its position after one missed claim, not after two") {
  lab.granted('A');
  Ask again;
  again.ticket = lab.queued('B').ticket;
  lab.play("CD queued; A released; 2001ms pass; C granted");
  lab.play("B queued; BD wait; C released; 2001ms pass", again);
  lab.play("D granted; E queued");
  lab.play("B queued; EB wait; B cancelled; released deleted; B queued; BE wait", again);
}
MUTANT("a waiter keeps its position after any number of missed claims",
       {"if missed == 1 then return", "if false then return"});
MUTANT("a waiter loses its position after one missed claim",
       {"if request.given_ticket > 0 then return request.given_ticket end", ""});

// A wake left over from before changes nothing.
CASE("stale wakes are harmless") {
  lab.granted('A');
  lab.cli({"RPUSH", lab.key("wake:" + Lab::owner('B').text()), "granted"});
  lab.play("B queued; B woken; B queued; A holds");
}

// The wake is kept for a waiter that has asked but does not block yet.
CASE("a wake before the block is not lost") {
  lab.play("A granted; B queued; A released");
  lock::SystemPoller poller;
  auto wake = lock::finish(poller, lab.store().wait_for_wake(lab.name(), Lab::owner('B'), 30s),
                           poller.now() + 30s, "lab");
  need(wake && *wake == lock::Wake::woken, "the wake is lost");
}

// Else the dead are no longer found, and their lines stay.
CASE("the queue lives as long as the records of its waiters") {
  const auto end = [&](const char* suffix) { return lab.end_of(suffix); };
  auto check = [&](const std::string& when) {
    const bool lives = end("queue") >= end("who") && end("alive") >= end("who");
    need(lives, "the queue ends before the lines, " + when);
  };
  lab.play("A granted ttl=10m; B queued ttl=10m; C queued");
  check("as one joins");
  lab.queued('C');
  check("as one asks again");
  lab.play("5s pass; A released; B granted ttl=10m");
  check("as one claims");
  lab.queued('C');
  check("behind a later holder");
  const auto long_end = end("who");
  lab.play("C cancelled; released deleted; D queued");
  check("as one joins anew");
  need(end("who") >= long_end, "the lines end before the holder's");
}
MUTANT("the queue expires with its heartbeats",
       {"LIMITS, QUEUE, ALIVE, WHO, RELEASED, HISTORY}", "LIMITS, WHO, RELEASED, HISTORY}"});

// The server gets a request of a waiter a second time, while the waiter blocks.
CASE("a waiter that a late copy of its request makes the head is woken") {
  lab.play(
      "A granted; BC queued; 14s pass; C queued; 2s pass; C queued; C woken; C queued; "
      "C asleep");
}
MUTANT("a late copy of a waiter's request wakes no head",
       {"local still_waits = ticket and M.queue.ticket(owner)", "local still_waits = false"});

// And once more, which the server granted the lock but did not reach.
CASE("waiters whose records were deleted keep their positions") {
  lab.granted('A');
  Ask again;
  again.ticket = lab.queued('B').ticket;
  lab.play("CD queued; who deleted; D queued; A released");
  need(lab.woken('B') && lab.waiters().find('D') != std::string::npos, "B is passed by");
  const lock::Token token = lab.granted('B', again);
  lab.play("C queued; CD wait; B released; who deleted");
  need(lab.granted('C') > token, "a grant is lost with its line");
  lab.play("C holds; all keys end");
}
MUTANT("admit removes a waiter without a line",
       {"return M.wakes.add(head, 'look')", "M.queue.remove(head)"});
MUTANT("acquire does not write a waiter's deleted line again",
       {"M.lines.write(owner, M.enter.new_line('waiting')) end  -- it", "end  -- it"});

// Else it is lost at its first renewal.
CASE("after a claim the records live as long as the lease") {
  lab.play("A granted; B queued shared ttl=10m; A released; B granted shared ttl=10m");
  const auto end = [&](const char* suffix) { return lab.end_of(suffix); };
  for (const char* suffix : {"holders", "limits", "who"}) {
    need(end(suffix) >= lab.now() + 10 * 60'000, std::string(suffix) + " ends before the lease");
  }
}

// One holder goes on while waiters come, replace one another, and die.
CASE("runs that came and went leave nothing behind while one stays") {
  lab.granted('A');
  Ask ask;
  ask.supersede = lock::Supersede{};
  int few = 0;
  for (char owner = 'B'; owner < 'B' + 40; ++owner) {
    ask.attempt = static_cast<uint64_t>(owner % 2);
    lab.queued(owner, ask);
    for (int i = 0; i < 6; ++i) {
      lab.pass(i == 0 ? 5s : 25s);
      lab.play("A renewed");
      if (i == 0) lab.queued(++owner, ask);
    }
    const int fields = std::stoi(lab.cli({"HLEN", lab.key("who")}));
    if (owner < 'B' + 10) few = std::max(few, fields);
    need(owner < 'B' + 10 || fields <= few, "what is known of those that are gone adds up");
  }
}
MUTANT("the sweep leaves the notes of waiters",
       {"call('HDEL', WHO, '!' .. owner, '#' .. owner)", "call('HDEL', WHO, '#' .. owner)"});

CASE("every key expires") {
  lab.play(
      "A granted; all keys end; 0s pass; BC queued; C removed; all forced; A released; "
      "B granted; all keys end");
}
MUTANT("the memory never expires", {"call('PEXPIREAT', META, int(memory.expires))", ""});
MUTANT("the holders never expire", {"{HOLDERS, LIMITS,", "{LIMITS,"});

CASE("overdue tombstones are removed") {
  for (char owner : {'A', 'B', 'C'}) {
    lab.granted(owner);
    lab.release(owner);
    lab.pass(40s);
  }
  need(lab.cli({"ZCARD", lab.key("released")}) == "2", "a tombstone stays though it is overdue");
}
MUTANT("the sweep leaves old tombstones", {"  sweep_tombstones()\n", ""});

constexpr const char* kSilent =
    "math.floor(beat_ends) - now <= 15000 * (M.beats.slices_of(beat_ends) - 1)";
constexpr const char* kForever = "3600000";  // ms: a heartbeat of a waiter that is well

// `count` waiters that come before all that ask from now on, each with a heartbeat of `beat` ms.
void crowd(Lab& lab, int count, const std::string& beat = kForever) {
  constexpr const char* kScript = R"(
    local clock = redis.call('LRANGE', 'clock', 0, 1)
    local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
    for i = 1, tonumber(ARGV[1]) do
      local owner = string.format('%032x', 4096 + i)
      redis.call('ZADD', KEYS[1], string.format('%.0f', now * 1000 - ARGV[1] + i), owner)
      redis.call('ZADD', KEYS[2], string.format('%.2f', now + ARGV[2]), owner)
      redis.call('HSET', KEYS[3], owner,
                 'state=waiting limit=1 token=0 since=0 ttl=30000 min_hold=0 responsive=1 | x')
    end)";
  lab.play("Y queued; Y cancelled; 1s pass");
  lab.cli({"EVAL", kScript, "3", lab.key("queue"), lab.key("alive"), lab.key("who"),
           std::to_string(count), beat});
  lab.pass(1s);
  lab.queued('X');  // the scripts know the head from here on
  lab.cancel('X');
}

void remove_crowd(Lab& lab, int count) {
  constexpr const char* kScript = R"(
    for i = 1, tonumber(ARGV[1]) do
      local owner = string.format('%032x', 4096 + i)
      redis.call('ZREM', KEYS[1], owner)
      redis.call('ZREM', KEYS[2], owner)
    end)";
  lab.cli({"EVAL", kScript, "2", lab.key("queue"), lab.key("alive"), std::to_string(count)});
}

int64_t beat_end(Lab& lab, char owner) {
  return std::stoll(lab.cli({"ZSCORE", lab.key("alive"), Lab::owner(owner).text()}));
}

CASE("slices and heartbeats grow with the position in the queue") {
  struct Row {
    int before;
    Millis slice;
  };
  for (const Row& place : {Row{0, 5s}, Row{63, 5s}, Row{64, 10s}, Row{127, 10s}, Row{128, 15s},
                           Row{192, 20s}, Row{5000, 20s}}) {
    lab.play("data lost; 0s pass; A granted ttl=1h");
    if (place.before > 0) crowd(lab, place.before);
    const lock::Queued queued = lab.queued('B');
    const std::string where = "behind " + std::to_string(place.before) + ": ";
    need(queued.position == static_cast<uint64_t>(place.before) + 1, where + "another place");
    need(queued.slice == place.slice, where + "another slice");
    const int64_t first = beat_end(lab, 'B');
    lab.pass(place.slice);
    need(lab.queued('B').slice == place.slice, where + "another slice the second time");
    need(beat_end(lab, 'B') == first + place.slice.count(), where + "not prolonged");
    lab.pass(3 * place.slice - 1ms);
    lab.play("A renewed ttl=1h");  // sweeps
    need(lab.queued('B').ticket == queued.ticket, where + "dead within three slices");
    lab.pass(3 * place.slice + 1ms);
    lab.queued('C');
    need(lab.cli({"ZSCORE", lab.key("alive"), Lab::owner('B').text()}).empty(),
         where + "alive after more than three slices");
  }
}
MUTANT("the heartbeat does not grow with the slice", {"now + 15000 * slices", "now + 15000"});
MUTANT("the slice does not grow with the position",
       {"return math.min(4, 1 + math.floor(place / 64))", "return 1"});

// How often `INFO commandstats` says that a command was called.
int calls(Lab& lab, const std::string& command) {
  const std::string stats = lab.cli({"INFO", "commandstats"}),
                    mark = "cmdstat_" + command + ":calls=";
  const size_t at = stats.find(mark);
  return at == std::string::npos ? 0 : std::stoi(stats.substr(at + mark.size()));
}

CASE("the heartbeat of an idle waiter is one write") {
  lab.play("A granted ttl=1h");
  crowd(lab, 300);
  const lock::Queued usual = lab.queued('B');
  lab.pass(10s);
  lab.cli({"CONFIG", "RESETSTAT"});
  const lock::Queued rest = lab.queued('B');
  need(calls(lab, "zadd") == 1, "the heartbeat is not written once");
  need(calls(lab, "pexpireat") <= 1, "the ends of all keys are moved");
  for (const char* write : {"hset", "zrem", "hdel", "lpush"}) {
    need(calls(lab, write) == 0, std::string("a second write: ") + write);
  }
  need(rest.ticket == usual.ticket && rest.position == usual.position, "another place");
  need(rest.slice == usual.slice && !rest.look_again, "another time to look again");
  need(lock::holder_in(rest.obstacle) && lock::holder_in(usual.obstacle), "no holder");
  const auto &now = std::get<lock::Holder>(*rest.obstacle),
             &before = std::get<lock::Holder>(*usual.obstacle);
  need(now.owner == before.owner && now.state == before.state && now.limit == before.limit &&
           now.token == before.token && now.since == before.since && now.ttl == before.ttl &&
           now.responsive == before.responsive && now.record == before.record &&
           now.entries == before.entries,
       "another holder");
  need(now.held == before.held + 10s && now.left == *before.left - 10s,
       "the holder's times differ");
}
MUTANT("an acquire far from the head moves the expiry of the keys",
       {"put_score(ALIVE, ends, owner)", "put_score(ALIVE, ends, owner) M.keys.note_new(ALIVE)"});

// It replaces what is there.
CASE("a renewal moves the ends of the keys once an hour") {
  lab.play("A granted; B queued; 10s pass");
  lab.cli({"CONFIG", "RESETSTAT"});
  lab.play("A renewed");
  need(calls(lab, "pexpireat") == 1, "the ends of all keys are moved");
  need(calls(lab, "hset") == 1, "the memory is written");
  const int64_t first = lab.end_of("holders");
  for (int i = 0; i < 400; ++i) {
    lab.play("10s pass; A renewed");
    need(lab.end_of("holders") >= lab.now() + 720 * 3'600'000LL, "they are not moved in time");
  }
  need(lab.end_of("holders") > first, "they are not moved");
}
MUTANT("each renewal moves the expiry of the keys",
       {"call('HSET', key, field, text) == 1", "call('HSET', key, field, text) >= 0"});

CASE("an idle waiter keeps its position by a heartbeat, which changes nothing else") {
  lab.play("A granted ttl=1h");
  crowd(lab, 300);
  lab.queued('B');
  const int64_t first = beat_end(lab, 'B');
  lab.pass(10s);
  lab.cli({"CONFIG", "RESETSTAT"});
  const auto rest = as<lock::StillQueued>(lab.heartbeat('B'), "it is to ask");
  need(rest.position == 301 && rest.slice == 20s, "another place");
  need(rest.holder == Lab::owner('A').text() && rest.left > 59min && rest.left < 1h,
       "another holder");
  need(beat_end(lab, 'B') == first + 10'000, "the heartbeat is not prolonged");
  for (const char* write : {"pexpireat", "hset", "zrem", "hdel", "lpush"}) {
    need(calls(lab, write) == 0, std::string("a write: ") + write);
  }
  // The scripts take it for a waiter at rest.
  lab.play("15s pass; A renewed ttl=1h");
  need(lab.queued('B').position == 301, "another place after it");
}
MUTANT("an idle waiter's heartbeat lasts for a short slice",
       {"M.beats.score(now, slices), owner)", "M.beats.score(now, 1), owner)"});
MUTANT("an idle waiter's heartbeat prolongs nothing",
       {"redis.pcall('ZADD', ALIVE, M.beats.score(now, slices), owner)", "0"});

// Else a waiter takes it for another holder each time, and asks.
CASE("a heartbeat names the holder that acquire named") {
  const auto check = [&](const std::string& why) {
    const lock::Queued queued = lab.queued('B');
    const auto rest = as<lock::StillQueued>(lab.heartbeat('B'), "it is to ask");
    need(queued.obstacle && lock::id_of(*queued.obstacle) == rest.holder, "another one: " + why);
    std::visit([&](const auto& one) { need(one.left == rest.left, "another end: " + why); },
               *queued.obstacle);
  };
  lab.play("A granted ttl=1h min-hold=1h");
  crowd(lab, 300);
  check("one that holds it");
  lab.close("c1", 30min);
  check("a closure");
  lab.close("c2", 3h, "c1");
  check("a closure that ends later");
  lab.open("c2");
  lab.play("A released");
  check("a cool-down");
}
MUTANT("a heartbeat names a cool-down", {"string.gsub(first[1], '^~', '')", "first[1]"});
MUTANT("a heartbeat does not name the closure",
       {"if closed then holder, ends", "if false then holder, ends"});

CASE("a waiter asks if a heartbeat is not enough") {
  const auto asks = [&](char owner) {
    return std::holds_alternative<lock::RetryNow>(lab.heartbeat(owner));
  };
  lab.play("A granted ttl=1h; B queued");
  need(asks('B'), "though it is near the head");
  crowd(lab, 300);
  need(asks('C'), "though it is not queued");
  lab.play("C queued");
  need(!asks('C'), "it is far from the head");
  lab.play("meta deleted");
  need(asks('C'), "though the memory was deleted");
  lab.play("C queued; memory full");
  need(asks('C'), "though the server's memory is full");
  lab.play("memory free; alive deleted");
  need(asks('C'), "though its heartbeat was deleted");
  lab.play("data lost; 0s pass; A granted ttl=40s");
  crowd(lab, 300);
  lab.play("C queued; 39s pass");
  need(asks('C'), "though the lease has ended");
  lab.play("data lost; 0s pass; A granted ttl=1h; B queued");
  crowd(lab, 300);
  lab.play("C queued; 15s pass");
  need(asks('C'), "though another waiter is dead");
  lab.play("data lost; 0s pass; A granted ttl=1h");
  crowd(lab, 300);
  lab.play("C queued; holders deleted");
  need(asks('C'), "though nobody holds the lock");
}
MUTANT("a heartbeat lets a waiter near the head wait", {"place < 64", "false"});
MUTANT("a heartbeat does not see that no lease is left",
       {"not first[2] or tonumber(first[2]) <= now or call('ZCOUNT'", "call('ZCOUNT'"});
MUTANT("a heartbeat does not see a dead waiter", {"or call('ZCOUNT', ALIVE, '-inf', now) > 0", ""});
MUTANT("a heartbeat counts that the server refuses",
       {"if type(beat) == 'table' then", "if false then"});
MUTANT("a heartbeat restores a deleted heartbeat",
       {" or not call('ZSCORE', ALIVE, owner) then", " then"});
MUTANT("a heartbeat does not read the form",
       {"if tonumber(call('HGET', META, 'form') or 0)", "if 1"});

CASE("idle waiters keep the keys alive") {
  lab.play("A granted ttl=1h");
  crowd(lab, 300, "60000.75");
  lab.queued('B');
  for (int look = 0; look < 8; ++look) {
    lab.queued('B');
    for (const char* key : {"queue", "alive", "who"}) {
      need(lab.end_of(key) >= beat_end(lab, 'B'),
           std::string("ends before a heartbeat does: ") + key);
    }
    lab.pass(7s);
  }
}

CASE("an idle waiter keeps its position with memory full") {
  lab.play("A granted ttl=1h");
  crowd(lab, 300);
  lab.queued('B');
  const int64_t first = beat_end(lab, 'B');
  lab.play("20s pass; memory full; B queued; memory free");
  need(beat_end(lab, 'B') == first + 20'000, "the heartbeat is refused");
}

// By now they know of every dead waiter and every lease that ended.
CASE("idle waiters sweep dead waiters and serve the head") {
  lab.play("A granted ttl=60s; B queued");
  crowd(lab, 300);
  lab.play("C queued; 15s pass");
  need(lab.queued('C').position == 301, "the dead are still before it");
  lab.play("20s pass; C queued; 20s pass; C queued; 5s pass; C queued");
  need(lab.holders() == "?", "a lease that ended serves nobody");
}
MUTANT("an idle waiter does not sweep an expired lease", {"  sweep_holders(caller)\n", ""});
MUTANT("an idle waiter does not sweep dead waiters", {"  sweep_waiters()\n", ""},
       {"if beat_ends <= now then", "if false then"});

CASE("a waiter that comes near the head is woken once") {
  lab.play("A granted ttl=1h; B queued");
  crowd(lab, 63);
  const lock::Ticket place = lab.queued('C').ticket;
  need(lab.queued('C').slice == 10s, "not far from the head");
  lab.play("D queued; B cancelled; C woken");
  const lock::Queued near = lab.queued('C');
  need(near.slice == 5s && near.position == 64 && near.ticket == place, "does not look more often");
  const int64_t first = beat_end(lab, 'C');
  lab.play("5s pass; C queued");
  need(beat_end(lab, 'C') == first + 5'000, "another heartbeat");
  lab.play("A renewed ttl=1h; C asleep");
}
MUTANT("the script does not wake a waiter that comes near the head",
       {"if ends and M.beats.slices_of(ends) > 1 then M.wakes.add(moved[i], 'look') end", ""});
MUTANT("the script wakes a waiter near the head again and again", {"left == 0 or ", ""},
       {"ends and M.beats.slices_of(ends) > 1", "ends"}, {"64 - left)", "0)"});

CASE("a waiter that comes near the head by a hand-over is woken") {
  lab.play("A granted; B queued");
  crowd(lab, 63);
  lab.play("CD queued; A released; BC woken; D asleep; B granted");
  need(lab.queued('C').slice == 5s, "does not look more often");
  lab.cli({"ZADD", lab.key("queue"), "1", Lab::owner('C').text()});
  lab.play("B released; C holds; CD woken; C granted; DE queued; D queued");
  lab.cli({"ZADD", lab.key("queue"), "1", Lab::owner('E').text()});
  lab.play("E queued; C released; E holds; D asleep");
}
MUTANT("a hand-over does not wake the waiter that comes near the head",
       {"if ends and M.beats.slices_of(ends) > 1 then M.wakes.add(moved[i], 'look') end", ""});

// However many leave at once, and by their death, too.
CASE("all waiters that come near the head together are woken") {
  lab.play("A granted ttl=1h");
  crowd(lab, 200, "15000");
  lab.play("BCD queued; 15s pass; A renewed ttl=1h");
  for (char owner : {'B', 'C', 'D'}) {
    need(lab.woken(owner), std::string(1, owner) + " is not woken");
    need(lab.queued(owner).slice == 5s, std::string(1, owner) + " does not look more often");
  }
}
MUTANT("the script wakes only the last waiter that comes near the head",
       {"math.max(0, 64 - left)", "64 - 1"});

// B has not asked for a while, C has: C is served, and B keeps its place.
CASE("a grant goes to a waiter that asked lately, and the others keep their positions") {
  lab.play("A granted ttl=1h");
  crowd(lab, 200);
  Ask again{.max_queue = 201};
  again.ticket = lab.queued('B', again).ticket;
  lab.play("CD queued; 15s pass; C queued");
  remove_crowd(lab, 200);
  lab.play("A released; C holds; B woken; C granted ttl=1h");
  again.max_queue = 1;
  const lock::Queued back = lab.queued('B', again);
  need(back.ticket == again.ticket && back.position == 1, "its place is lost");
  lab.play("BD wait; C released; B granted");
}
MUTANT("admit grants the lock to a silent waiter", {kSilent, "false"});
MUTANT("admit does not wake the silent waiter that it passes over",
       {"M.tombstones.add(head, 0) end\n      M.wakes.add(head, 'look')",
        "M.tombstones.add(head, 0) end"});
MUTANT("a waiter that was passed over finds the queue full", {" and not waited_before", ""});
MUTANT("a waiter that was passed over moves to the end of the queue",
       {"if M.stamps.of(head) > 0 then M.tombstones.add(head, 0) end",
        "M.tombstones.add(head, 1)"});

// Once the holder's lease is over: the dead cost no claim each.
CASE("the only survivor of a queue is served") {
  lab.granted('A');
  crowd(lab, 3000, "60000.75");
  lab.queued('Z');
  Millis took{0};
  while (std::holds_alternative<lock::Queued>(lab.acquire('Z'))) {
    const Millis slice = lab.queued('Z').slice.value_or(5s);
    lab.pass(slice);
    took += slice;
    need(took <= 50s, "waits for the dead");
  }
  need(lab.holders() == "Z" && lab.inspect().live_waiters == 0, "the dead still wait");
}
MUTANT("admit grants the lock to dead idle waiters one by one", {kSilent, "false"});

CASE("an idle waiter notes its attempts") {
  lab.play("A granted ttl=1h");
  crowd(lab, 300);
  for (uint64_t attempt : {1U, 2U, 3U}) {
    need(lab.queued('B', {.ticket = {7'000'000'000'000'000}, .attempt = attempt}).position == 301,
         "another place");
    lab.pass(1s);
  }
  const int64_t end = beat_end(lab, 'B');
  lab.play("B ended attempt=2");
  need(beat_end(lab, 'B') == end, "a late attempt prolongs a heartbeat");
}
MUTANT("acquire does not store the attempt of a waiter",
       {"M.stamps.store(request.owner, request.stamp) end\n  local ticket", "end\n  local ticket"});
MUTANT("a late attempt renews the heartbeat of a waiter",
       {"if stamp > 0 and stamp < M.stamps.of(owner) then return {'gone'",
        "if M.queue.ticket(owner) then M.queue.beat(owner) end if stamp > 0 and stamp < "
        "M.stamps.of(owner) then return {'gone'"});

// ---- who is served before those that came earlier ----

// Waiters that come at random times, some of them urgent.
struct RandomQueue {
  struct Waiter {
    char letter;
    int64_t came;
    int64_t urgent;
  };
  std::vector<Waiter> waiters{};

  RandomQueue(Lab& lab, std::mt19937& random) {
    constexpr std::array<int, 5> kUrgent{0, 0, 500, 2000, 5000};
    const int count = std::uniform_int_distribution(2, 8)(random);
    lab.play("data lost; 1ms pass; A granted");
    for (int i = 0; i < count; ++i) {
      lab.pass(Millis(std::uniform_int_distribution(1, 1500)(random)));
      const int urgent = kUrgent[std::uniform_int_distribution<size_t>(0, 4)(random)];
      waiters.push_back({static_cast<char>('B' + i), lab.now(), urgent});
      lab.queued(waiters.back().letter, {.urgent = Millis(urgent)});
    }
  }

  std::string promised() const {
    auto order = waiters;
    std::stable_sort(order.begin(), order.end(), [](const Waiter& a, const Waiter& b) {
      return a.came - a.urgent < b.came - b.urgent;
    });
    std::string letters;
    for (const Waiter& waiter : order) letters.push_back(waiter.letter);
    return letters;
  }

  // A later one stands before an earlier one only if it is urgent and came soon enough.
  void check_overtaking(const std::string& order) const {
    for (const Waiter& later : waiters) {
      for (const Waiter& earlier : waiters) {
        if (later.came <= earlier.came || order.find(later.letter) > order.find(earlier.letter))
          continue;
        need(later.came - earlier.came <= later.urgent, "overtaken by one that came too late");
      }
    }
  }
};

CASE("urgent: a thousand queues are served in the order that was promised") {
  const char* given = std::getenv("RLOCK_CONTRACT_SEED");
  const auto seed = given != nullptr ? unsigned(std::stoul(given)) : std::random_device{}();
  std::mt19937 random(seed);
  for (int i = 0; i < 1000; ++i) {
    const RandomQueue queue(lab, random);
    const std::string order = lab.waiters();
    const std::string which = ", queue " + std::to_string(i) + " of seed " + std::to_string(seed);
    need(order == queue.promised(), order + " instead of " + queue.promised() + which);
    queue.check_overtaking(order);
  }
}
MUTANT("an urgent waiter joins at the end of the queue",
       {"args.earlier and math.max(1, now_us - args.earlier)", "nil"});

CASE("urgent: the ticket that a client brings is not made earlier a second time") {
  lab.play("A granted; B queued");
  const uint64_t ticket = lab.queued('U', {.urgent = 1h}).ticket.value;
  lab.play("data lost; 1ms pass; B granted");
  need(lab.queued('U', {.ticket = {ticket}, .urgent = 1h}).ticket.value == ticket,
       "another ticket");
}
MUTANT("an urgent waiter overtakes more waiters each time it rejoins",
       {"if request.given_ticket > 0 then return request.given_ticket end",
        "if request.given_ticket > 0 then return request.given_ticket - (args.earlier or 0) end"});

CASE("urgent: a waiter that misses two claims moves to the end") {
  lab.granted('A');
  const uint64_t ticket = lab.queued('U', {.urgent = 1h}).ticket.value;
  const std::string again = " ticket=" + std::to_string(ticket) + " urgent=1h";
  lab.play("B queued; A released; 3s pass; B granted; U queued" + again);
  lab.play("C queued; UC wait; B released; 3s pass; C granted; D queued; U queued" + again);
  lab.play("DU wait");
}
MUTANT("an urgent waiter never moves to the end of the queue",
       {"if missed == 1 then return", "if missed == 1 and not urgent then return"});

CASE("first: a waiter that is moved to the head is woken and learns it") {
  lab.play("A granted; BCD queued; D moved; DBC wait; D woken; C moved; CDB wait; C moved");
  need(lab.queued('D').position == 2, "it does not learn its place");
  need(lab.move_first('A') == lock::MoveReply::holds, "a holder is moved");
  need(lab.move_first('X') == lock::MoveReply::not_found, "nobody is moved");
}

// Its heartbeat is that of one far behind.
CASE("first: a waiter from far behind is served next") {
  lab.play("A granted ttl=1h");
  crowd(lab, 300);
  lab.play("B queued; 20s pass; B moved; A released; B holds; B granted");
}
MUTANT("a moved waiter keeps its long heartbeat",
       {"beat_ends and math.floor(beat_ends) or", "beat_ends or"});

CASE("first: exempt waiters of a closed lock stay before it") {
  lab.granted('A');
  lab.close("c1", 1h);
  lab.play("BC queued; DE queued while-closed; C moved; DECB wait; E moved; EDCB wait");
}
MUTANT("a move puts an ordinary waiter before the exempt ones",
       {"ticket < passed and '-inf' or int(passed)", "'-inf'"});
MUTANT("a move puts an exempt waiter behind the others",
       {"ticket < passed and '-inf' or int(passed)", "int(passed)"});

CASE("first: the row of its run says who moved it") {
  lab.play("A granted; BC queued");
  lab.move_first('C', "by the operator");
  lab.play("A released; C granted; C exit:0");
  need(as<lock::Run>(lab.history().at(0), "no row").record == "by the operator", "it is not said");
}
MUTANT("a move does not store who moved the waiter", {"line.record = args.record", ""});

CASE("first: with memory full no waiter is moved") {
  lab.play("A granted; BC queued; memory full");
  const std::string before = lab.fingerprint();
  bool refused = false;
  try {
    lab.move_first('C');
  } catch (const Broken&) {
    refused = true;
  }
  need(refused && lab.fingerprint() == before, "something was written");
  lab.play("memory free");
}

CASE("first: the head is served if a lease has expired") {
  lab.play("A granted ttl=10s; BC queued; 10s pass; B moved; B holds");
}

CASE("urgent: after a clock that was ahead, no run overtakes more than it may") {
  lab.play(
      "60d pass; A granted; A released; -60d pass; B granted ttl=1h; C queued; 5s pass; "
      "D queued urgent=1s; CD wait; E queued urgent=30s; ECD wait");
}

}  // namespace
}  // namespace rlock::contract
