// What is done once, and what supersedes others: each rule, removed, breaks its invariant.
#include <doctest/doctest.h>

#include "model/bounds.hpp"
#include "model/mutants.hpp"

namespace rlock::model {
namespace {

const Bounds kOne = work("", {key("k")}, {.failures = 1});
const Bounds kOneForgotten = work("", {key("k")}, {.faults = 1, .forgets = 1});
const Bounds kOneForced = work("", {key("k")}, {.forces = 1});
const Bounds kTwo = work("", {key("k"), key("k")}, {.failures = 1});
const Bounds kTwoWithFault = work("", {key("k"), key("k")}, {.faults = 1});
const Bounds kBehindTwo = work("", {key("k"), {}, {}, key("k")}, {});
const Bounds kSlots = work("", {{}, key("k"), key("k")}, {.limits = {1, 2, 2}});
const Bounds kGivesUp = work("", {key("k", 1), key("k", 1)}, {.failures = 1});
const Bounds kGivesUpWithFault = work("", {key("k", 1), key("k", 1)}, {.faults = 1});
const Bounds kDistance = work("", {within(12'000), within(12'000)}, {.rounds = 2});

const std::vector<Mutant> kOnce{
    {"a success is not marked",
     {{"if outcome == 'succeeded' then\n    local", "if false then\n    local"}},
     "D: a success is not marked",
     kOne},
    {"a mark is written at the acquire",
     {{"s.grant(owner, line, grant_until, stamp)",
       "s.grant(owner, line, grant_until, stamp)\n"
       "  if what then s.once_part().mark_done(what, line.token + 0, now, record) end"}},
     "D: key:k is marked without",
     kOne},
    {"a failed run is marked",
     {{"if outcome == 'succeeded' then\n    local", "if true then\n    local"}},
     "D: key:k is marked without",
     kOne},
    {"a resent release is marked anew",
     {{"if end_kind == 2 then return s.mark_before() end",
       "if end_kind == 2 then return s.note_outcome(nil) end"},
      {"if token <= once.forgotten_token() then return '' end", ""}},
     "D: what was forgotten",
     kOneForgotten},
    {"a late success is marked though forgotten since",
     {{"if token <= once.forgotten_token() then return '' end", ""}},
     "D: what was forgotten",
     kOneForgotten},
    {"forget forgets what runs now",
     {{"then return line.token - 1 end", "then return math.max(meta.last, now_us) end"}},
     "D: a success is not marked",
     kOneForgotten},
    {"to forget one KEY forgets all",
     {{"if field ~= '' then\n  local mark", "if false then\n  local mark"}},
     "D: the mark of",
     work("", {key("k"), key("l")}, {.forgets = 1})},
    {"a run that was forced out is marked",
     {{"forced and {'absent', 'forced', s.note_of(owner)}",
       "forced and {'absent', 'forced', s.note_of(owner), s.note_outcome(line)}"}},
     "D: one that was forced out",
     kOneForced},
    {"a lost lease is marked although taken since",
     {{"if why and not (why == 'full' and (not other or other[4] <= number)) then return '' end",
       ""}},
     "D: marked though",
     kTwoWithFault},
    {"a free lock is acquired although it is done",
     {{"reply = s.done_reply()\n  if reply then s.leave", "reply = nil\n  if reply then s.leave"}},
     "D: B1 is granted",
     kTwo},
    {"a waiter starts although it is done",
     {{"elseif verdict then", "elseif false then"}},
     "D: B1 is granted",
     kTwo},
    {"a grant is claimed although it is done",
     {{"return not (line and line.state ~= 'granted')", "return not line"}},
     "D: B1 starts",
     kSlots},
    {"waiters whose work is done are not woken",
     {{"s.wake(owner, s.ended_as(kind))", ""}},
     "Q:",
     kTwo},
    {"failures are not counted",
     {{"mark.failures, mark.failed = failures_of(what, mark) + 1, what.asked", ""}},
     "D: failures",
     kGivesUp},
    {"one that died did not fail",
     {{"if what then s.once_part().note_failure(what) end\n  s.add", "s.add"}},
     "D: failures",
     kGivesUpWithFault},
    {"one that was put back fails twice",
     {{"s.add_tombstone(owner .. ':counted', 0)", ""}},
     "D: failures",
     kGivesUpWithFault},
    {"one that died after it was put back did not fail",
     {{"s.with_slot(s.words_again(since), slot)", "s.with_slot('', slot)"}},
     "D: failures",
     work("", {key("k", 1), {}}, {.faults = 1, .losses = 1})},
    {"failures outlive the success",
     {{"mark.failures, mark.failed = 0, 0", ""}},
     "D: failures",
     work("", {key("k", 2), key("k", 2)}, {.failures = 1})},
    {"what was granted after one asked is not done",
     {{"return mark.granted > what.asked or", "return"}},
     "D: ",
     work("", {{}, within(12'000), within(12'000)}, {})},
    {"the distance counts from the grant",
     {{"mark.asked > what.asked - what.span", "mark.granted > what.asked - what.span"}},
     "D: done without",
     kDistance},
    {"the lock is handed to a waiter whose work is done",
     {{"local verdict = what and", "local verdict = false and"}},
     "D: ",
     kBehindTwo},
};

const Bounds kNumbers = work("", {newest("1"), newest("2"), newest("3")}, {});
const Bounds kLast = work("", {newest(), newest(), newest()}, {});
const Bounds kNumbersOnSlots = work("", {{}, newest("1"), newest("2")}, {.limits = {1, 2, 2}});

const std::vector<Mutant> kSupersede{
    {"one with a smaller number replaces a greater one",
     {{"older = number < its", "older = false"}},
     "P: ",
     kNumbers},
    {"both stay in the queue", {{"if other then replace(other) end", ""}}, "P: two", kLast},
    {"it goes to the end of the queue",
     {{"at = at > 0 and math.min(at, taken) or taken", "at = s.issue()"}},
     "P: the place",
     kLast},
    {"one that was replaced may come back",
     {{"  s.add_tombstone(owner, kind)\n  if note", "  if note"}},
     "L: ",
     kLast},
    {"one that was replaced is not woken", {{"s.wake(owner, s.ended_as(kind))", ""}}, "Q: ", kLast},
    {"an older one runs after a newer one",
     {{"if newest and newest.token > number then return {'superseded', newest.record} end", ""}},
     "P: an older one starts",
     kNumbers},
    {"a claim does not count as the newest",
     {{"if supersedes then supersedes.note_newest() end\n      if s.keep", "if s.keep"}},
     "P: an older one starts",
     kNumbers},
    {"an overtaken grant is claimed",
     {{"reply = supersedes and supersedes.overtaken(line)", "reply = nil"}},
     "P: an older one starts",
     kNumbersOnSlots},
    {"a holder is replaced",
     {{"and s.queue_ticket(other) and s.read_line",
       "and (s.queue_ticket(other) or s.held_until(other)) and s.read_line"}},
     "O: ",
     kLast},
    {"a put-back loses the number",
     {{"if tonumber(supersede or '') then s.once_part().note_number(tonumber(supersede), record) "
       "end",
       ""}},
     "P: an older one starts",
     work("", {newest("1"), newest("2")}, {.losses = 1})},
    {"one that comes back counts as the last one",
     {{"older = tonumber(given_ticket) > 0 and tonumber(given_ticket) < "
       "tonumber(s.queue_ticket(other))",
       "older = false"}},
     "P: ",
     work("", {{}, newest(), newest()}, {.losses = 1})},
};

}  // namespace

TEST_CASE("each rule for what is done once, removed, breaks its invariant") {
  for (const Mutant& mutant : kOnce) check_caught(mutant);
}

TEST_CASE("each rule for what supersedes others, removed, breaks its invariant") {
  for (const Mutant& mutant : kSupersede) check_caught(mutant);
}

}  // namespace rlock::model
