// Waiters far from the head: they ask less often, and come back to the usual pace in time.
#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;

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
      redis.call('HSET', KEYS[3], owner, 'x', '+' .. owner, '1 waiting 1 0 0 30000 0 1')
    end)";
  lab.queued('Y');
  lab.cancel('Y');
  lab.pass(1s);
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

constexpr Ask kLong{.ttl = 3'600s};

void slices_grow(Lab& lab) {
  struct Row {
    int before;
    Millis slice;
  };
  for (const Row& place : {Row{0, 5s}, Row{63, 5s}, Row{64, 10s}, Row{127, 10s}, Row{128, 15s},
                           Row{192, 20s}, Row{5000, 20s}}) {
    lab.cli({"FLUSHALL"});
    lab.pass(0s);
    lab.granted('A', kLong);
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
    need(lab.queued('B').ticket == queued.ticket, where + "dead within three slices");
    lab.pass(3 * place.slice + 1ms);
    lab.queued('C');
    need(lab.cli({"ZSCORE", lab.key("alive"), Lab::owner('B').text()}).empty(),
         where + "alive after more than three slices");
  }
}

// What `INFO commandstats` says of one command.
bool was_called(Lab& lab, const std::string& command) {
  return lab.cli({"INFO", "commandstats"}).find("cmdstat_" + command + ":") != std::string::npos;
}

void one_write(Lab& lab) {
  lab.granted('A', kLong);
  crowd(lab, 300);
  const lock::Queued usual = lab.queued('B');
  lab.pass(10s);
  lab.cli({"CONFIG", "RESETSTAT"});
  const lock::Queued rest = lab.queued('B');
  need(was_called(lab, "zadd"), "the heartbeat is not written");
  for (const char* write : {"pexpireat", "hset", "zrem", "hdel", "lpush"}) {
    need(!was_called(lab, write), std::string("a second write: ") + write);
  }
  need(rest.ticket == usual.ticket && rest.position == usual.position, "another place");
  need(rest.slice == usual.slice && !rest.look_again, "another time to look again");
  need(rest.holder && usual.holder, "no holder");
  const lock::Holder &now = *rest.holder, &before = *usual.holder;
  need(now.owner == before.owner && now.state == before.state && now.limit == before.limit &&
           now.token == before.token && now.since == before.since && now.ttl == before.ttl &&
           now.responsive == before.responsive && now.record == before.record &&
           now.entries == before.entries,
       "another holder");
  need(now.held == before.held + 10s && now.left == before.left - 10s, "the holder's times differ");
}

void keys_outlive_the_resting(Lab& lab) {
  lab.granted('A', kLong);
  crowd(lab, 300, "60000.75");
  lab.queued('B');
  for (int look = 0; look < 8; ++look) {
    lab.queued('B');
    for (const char* key : {"queue", "alive", "who"}) {
      need(std::stoll(lab.cli({"PEXPIRETIME", lab.key(key)})) >= beat_end(lab, 'B'),
           std::string("ends before a heartbeat does: ") + key);
    }
    lab.pass(7s);
  }
}

void rest_with_memory_full(Lab& lab) {
  lab.granted('A', kLong);
  crowd(lab, 300);
  lab.queued('B');
  const int64_t first = beat_end(lab, 'B');
  lab.pass(20s);
  lab.cli({"CONFIG", "SET", "maxmemory", "1"});
  lab.queued('B');
  lab.cli({"CONFIG", "SET", "maxmemory", "0"});
  need(beat_end(lab, 'B') == first + 20'000, "the heartbeat is refused");
}

// By now they know of every dead waiter and every lease that ended.
void the_resting_sweep(Lab& lab) {
  lab.granted('A', {.ttl = 60s});
  lab.queued('B');
  crowd(lab, 300);
  lab.queued('C');
  lab.pass(15s);
  need(lab.queued('C').position == 301, "the dead are still before it");
  lab.pass(20s);
  lab.queued('C');
  lab.pass(20s);
  lab.queued('C');
  lab.pass(5s);
  lab.queued('C');
  need(lab.holders() == "?", "a lease that ended serves nobody");
}

void nudged_once_when_near(Lab& lab) {
  const lock::Token token = lab.granted('A', kLong);
  lab.queued('B');
  crowd(lab, 63);
  const lock::Ticket place = lab.queued('C').ticket;
  need(lab.queued('C').slice == 10s, "not far from the head");
  lab.cancel('B');
  need(lab.woken('C'), "is not woken when it comes near the head");
  const lock::Queued near = lab.queued('C');
  need(near.slice == 5s && near.position == 64 && near.ticket == place, "does not look more often");
  const int64_t first = beat_end(lab, 'C');
  lab.pass(5s);
  lab.queued('C');
  need(beat_end(lab, 'C') == first + 5'000, "another heartbeat");
  need(std::holds_alternative<lock::Renewal>(lab.renew('A', token, kLong)), "not renewed");
  need(!lab.woken('C'), "is woken again");
}

void nudged_by_a_hand_over(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  crowd(lab, 63);
  lab.queued('C');
  lab.queued('D');
  lab.release('A');
  need(lab.woken('B') && lab.woken('C') && !lab.woken('D'), "another is woken");
  lab.granted('B');
  need(lab.queued('C').slice == 5s, "does not look more often");
  lab.cli({"ZADD", lab.key("queue"), "1", Lab::owner('C').text()});
  lab.release('B');
  need(lab.holders() == "C" && lab.woken('C') && lab.woken('D'), "D is not woken in its turn");
  lab.granted('C');
  lab.queued('D');
  lab.queued('E');
  lab.queued('D');
  lab.cli({"ZADD", lab.key("queue"), "1", Lab::owner('E').text()});
  lab.queued('E');
  lab.release('C');
  need(lab.holders() == "E" && !lab.woken('D'), "D is woken though it asked near the head");
}

// However many leave at once, and by their death, too.
void all_that_come_near_are_nudged(Lab& lab) {
  const lock::Token token = lab.granted('A', kLong);
  crowd(lab, 200, "15000");
  for (char owner : {'B', 'C', 'D'}) lab.queued(owner);
  lab.pass(15s);
  need(std::holds_alternative<lock::Renewal>(lab.renew('A', token, kLong)), "not renewed");
  for (char owner : {'B', 'C', 'D'}) {
    need(lab.woken(owner), std::string(1, owner) + " is not woken");
    need(lab.queued(owner).slice == 5s, std::string(1, owner) + " does not look more often");
  }
}

// B has not asked for a while, C has: C is served, and B keeps its place.
void the_silent_are_passed_by(Lab& lab) {
  lab.granted('A', kLong);
  crowd(lab, 200);
  Ask again{.max_queue = 201};
  again.ticket = lab.queued('B', again).ticket;
  lab.queued('C');
  lab.queued('D');
  lab.pass(15s);
  lab.queued('C');
  remove_crowd(lab, 200);
  lab.release('A');
  need(lab.holders() == "C", "one that has been silent is granted the lock");
  need(lab.woken('B'), "the one that was passed by is not woken");
  lab.granted('C', kLong);
  again.max_queue = 1;
  const lock::Queued back = lab.queued('B', again);
  need(back.ticket == again.ticket && back.position == 1, "its place is lost");
  need(lab.waiters() == "BD", "another order");
  lab.release('C');
  lab.granted('B');
}

// Once the holder's lease is over: the dead cost no claim each.
void the_last_alive(Lab& lab) {
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

void attempts_at_rest(Lab& lab) {
  lab.granted('A', kLong);
  crowd(lab, 300);
  for (uint64_t attempt : {1U, 2U, 3U}) {
    need(lab.queued('B', {.ticket = {7'000'000'000'000'000}, .attempt = attempt}).position == 301,
         "another place");
    lab.pass(1s);
  }
  const int64_t end = beat_end(lab, 'B');
  as<lock::OwnerEnded>(lab.acquire('B', {.attempt = 2}), "a late attempt is accepted");
  need(beat_end(lab, 'B') == end, "a late attempt prolongs a heartbeat");
}

}  // namespace

const std::vector<NamedCase>& rest_cases() {
  static const std::vector<NamedCase> cases{
      {"slices and heartbeats grow with the place in the queue", slices_grow},
      {"the heartbeat of a waiter at rest is one write", one_write},
      {"waiters at rest keep the keys alive", keys_outlive_the_resting},
      {"a waiter at rest keeps its place with memory full, too", rest_with_memory_full},
      {"waiters at rest sweep the dead and serve the head", the_resting_sweep},
      {"one that comes near the head is woken once", nudged_once_when_near},
      {"one that comes near the head by a hand-over is woken", nudged_by_a_hand_over},
      {"all that come near the head at once are woken", all_that_come_near_are_nudged},
      {"a grant goes to one that asked lately, and the others keep their places",
       the_silent_are_passed_by},
      {"when all but one die at once, that one is served", the_last_alive},
      {"a waiter at rest notes its attempts", attempts_at_rest},
  };
  return cases;
}

}  // namespace rlock::contract
