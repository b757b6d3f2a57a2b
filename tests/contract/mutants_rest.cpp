#include "contract/mutants.hpp"

namespace rlock::contract {
namespace {

constexpr const char* kSilent = "return math.floor(beat) - now <= HEARTBEAT * (beat % 1 * 4)";
constexpr const char* kDue =
    "if tonumber(ends) <= now or call('ZCOUNT', ALIVE, '-inf', now) > 0 then";

const std::vector<Mutant> kUsualWay{
    {"a waiter that has been silent is granted the lock",
     {{kSilent, "return false"}},
     "a grant goes to"},
    {"dead waiters at rest are granted the lock one by one",
     {{kSilent, "return false"}},
     "when all but one"},
    {"one that was passed by is not woken",
     {{"add_tombstone(owner, EXPIRED) end\n    wake(owner, 'look')",
       "add_tombstone(owner, EXPIRED) end"}},
     "a grant goes to"},
    {"one that was passed by finds the queue full",
     {{"then full = false end", "then end"}},
     "a grant goes to"},
    {"one that was passed by goes to the tail",
     {{"if stamp_of(owner) > 0 then add_tombstone(owner, EXPIRED) end",
       "add_tombstone(owner, REQUEUED)"}},
     "a grant goes to"},
    {"one that comes near the head is not woken",
     {{"if is_far(beat) then wake(moved[i], 'look') end", ""}},
     "one that comes near the head is woken once"},
    {"one that comes near the head by a hand-over is not woken",
     {{"if is_far(beat) then wake(moved[i], 'look') end", ""}},
     "one that comes near the head by"},
    {"only the last of those that come near the head is woken",
     {{"math.max(0, NEAR - gone)", "NEAR - 1"}},
     "all that come near"},
    {"one near the head is woken again and again",
     {{"if is_far(beat) then wake", "if true then wake"},
      {"local gone = n_queue > NEAR and n_queue - call('ZCARD', QUEUE) or 0", "local gone = 64"}},
     "one that comes near the head is woken once"},
    {"a long slice, and the heartbeat of a short one",
     {{"now + HEARTBEAT * slices + (slices - 1) / 4", "now + HEARTBEAT + (slices - 1) / 4"}},
     "slices and heartbeats"},
    {"the slice does not grow with the place",
     {{"return math.min(MOST_SLICES, 1 + math.floor(place / NEAR))", "return 1"}},
     "slices and heartbeats"},
};

const std::vector<Mutant> kShortWays{
    {"the heartbeat of a waiter at rest is not prolonged",
     {{"redis.pcall('ZADD', ALIVE, beat_score(slices), owner)", "1"}},
     "slices and heartbeats"},
    {"the heartbeat of a waiter at rest is refused with memory full",
     {{"redis.pcall('ZADD', ALIVE, beat_score(slices), owner)",
       "call('ZADD', ALIVE, beat_score(slices), owner)"}},
     "a waiter at rest keeps"},
    {"waiters at rest take the usual way",
     {{"present == 5 and beat_at_rest()", "nil"}},
     "the heartbeat of a waiter at rest"},
    {"the keys end before the waiters at rest",
     {{"if call('PTTL', ALIVE) < HEARTBEAT * slices then return nil end", ""}},
     "waiters at rest keep"},
    {"waiters at rest do not see that a lease has ended",
     {{kDue, "if call('ZCOUNT', ALIVE, '-inf', now) > 0 then"}},
     "waiters at rest sweep"},
    {"waiters at rest do not see that others have died",
     {{kDue, "if tonumber(ends) <= now then"}},
     "waiters at rest sweep"},
    {"a waiter at rest does not note its attempt",
     {{"if stamp > 0 then call('HSET', WHO, '#' .. owner, stamp) end", ""}},
     "a waiter at rest notes"},
    {"a late attempt keeps a waiter at rest alive",
     {{"if stamp > 0 and stamp < tonumber(call('HGET', WHO, '#' .. owner) or 0) then return nil "
       "end",
       ""}},
     "a waiter at rest notes"},
    {"a waiter that has been silent is granted the lock",
     {{"not beat or tonumber(beat) % 1 > 0 then sole = false", "not beat then sole = false"}},
     "a grant goes to"},
    {"one that comes near the head by a hand-over is not woken",
     {{"if tonumber(comer_beat or 0) % 1 > 0 then push_wake(comer, 'look') end", ""}},
     "one that comes near the head by"},
    {"one near the head is woken by each hand-over",
     {{"if tonumber(comer_beat or 0) % 1 > 0 then push_wake", "if comer_beat then push_wake"}},
     "one that comes near the head by"},
    {"a newcomer's first slice does not grow with its place",
     {{"local slices = slices_at(position)", "local slices = 1"}},
     "slices and heartbeats"},
};

}  // namespace

const std::vector<Mutant>& rest_mutants(Way way) {
  return way == Way::usual ? kUsualWay : kShortWays;
}

}  // namespace rlock::contract
