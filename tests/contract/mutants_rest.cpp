#include "contract/mutants.hpp"

namespace rlock::contract {
namespace {

constexpr const char* kSilent = "math.floor(beat) - now <= 15000 * (beat % 1 * 4)";

const std::vector<Mutant> kRestMutants{
    {"a waiter that has been silent is granted the lock", {{kSilent, "false"}}, "a grant goes to"},
    {"dead waiters at rest are granted the lock one by one",
     {{kSilent, "false"}},
     "when all but one"},
    {"one that was passed by is not woken",
     {{"s.add_tombstone(head, 0) end\n      s.wake(head, 'look')", "s.add_tombstone(head, 0) end"}},
     "a grant goes to"},
    {"one that was passed by finds the queue full",
     {{"then full = false end", "then end"}},
     "a grant goes to"},
    {"one that was passed by goes to the tail",
     {{"if line.stamp > 0 then s.add_tombstone(head, 0) end", "s.add_tombstone(head, 1)"}},
     "a grant goes to"},
    {"one that comes near the head is not woken",
     {{"if beat and beat % 1 > 0 then s.wake(moved[i], 'look') end", ""}},
     "one that comes near the head is woken once"},
    {"one that comes near the head by a hand-over is not woken",
     {{"if beat and beat % 1 > 0 then s.wake(moved[i], 'look') end", ""}},
     "one that comes near the head by"},
    {"only the last of those that come near the head is woken",
     {{"math.max(0, 64 - gone)", "64 - 1"}},
     "all that come near"},
    {"one near the head is woken again and again",
     {{"if beat and beat % 1 > 0 then s.wake", "if true then s.wake"},
      {"if s.n_queue > 64 and call('ZCARD', QUEUE) < s.n_queue then", "if s.n_queue > 64 then"},
      {"local gone = s.n_queue - call('ZCARD', QUEUE)", "local gone = 64"}},
     "one that comes near the head is woken once"},
    {"a long slice, and the heartbeat of a short one",
     {{"now + 15000 * slices + (slices - 1) / 4", "now + 15000 + (slices - 1) / 4"}},
     "slices and heartbeats"},
    {"the slice does not grow with the place",
     {{"return math.min(4, 1 + math.floor(place / 64))", "return 1"}},
     "slices and heartbeats"},
    {"a heartbeat writes more than it needs",
     {{"local lasting = s.latest_beat > 0 and not s.queue_is_new and ALIVE or WHO",
       "local lasting = 'x'"}},
     "the heartbeat of a waiter at rest"},
    {"the keys end before the waiters at rest",
     {{"local moves_on = s.latest_beat > before or", "local moves_on ="}},
     "waiters at rest keep"},
    {"a heartbeat does not see that a lease has ended",
     {{"local unswept = n_holders > 0 and first_end <= now or", "local unswept ="}},
     "waiters at rest sweep"},
    {"a heartbeat does not see that others have died",
     {{"or dead > 0 or not", "or not"}},
     "waiters at rest sweep"},
    {"a waiter does not note its attempt",
     {{"if stamp > 0 then s.note_stamp(owner, stamp) end", ""}},
     "a waiter at rest notes"},
    {"a late attempt keeps a waiter alive",
     {{"(ends[1] or ends[2] or stamp < newest)", "(ends[1] or ends[2])"}},
     "a waiter at rest notes"},
};

}  // namespace

const std::vector<Mutant>& rest_mutants() {
  return kRestMutants;
}

}  // namespace rlock::contract
