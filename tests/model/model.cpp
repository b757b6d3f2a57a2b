// The native protocol as a whole: every order in which a few clients, faults and operators may act,
// over the real scripts and keys in memory. A wake is a hint that may get lost here at any time, so
// that it does not show when a wake comes before the state it reports: tests/contract shows that.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "model/explore.hpp"

namespace rlock::model {
namespace {

constexpr int64_t kShared = 1'000'000'000;

// What a client does once, and how it supersedes others.
Work key(const std::string& name, int64_t max_failures = 0) {
  return {.once = "key:" + name, .max_failures = max_failures};
}

Work within(Moment distance) {
  return {.once = "within", .span = distance};
}

Work newest(const std::string& number = "+") {
  return {.supersede = number};
}

// Each supersedes those with smaller ones.
std::vector<Work> numbers(int count) {
  std::vector<Work> works;
  for (int number = 1; number <= count; ++number) works.push_back(newest(std::to_string(number)));
  return works;
}

std::vector<Work> two(const Work& work) {
  return {work, work};
}
std::vector<Work> three(const Work& work) {
  return {work, work, work};
}

Bounds named(const char* name, Bounds bounds) {
  bounds.name = name;
  return bounds;
}

const std::vector<Bounds>& usual_bounds() {
  static const std::vector<Bounds> list{
      named("two clients, a fault", {.limits = {1, 1}, .faults = 1}),
      named("two clients, an operator", {.limits = {1, 1}, .forces = 1}),
      named("two clients, twice each, data loss", {.limits = {1, 1}, .rounds = 2, .losses = 1}),
      named("three clients, an operator", {.limits = {1, 1, 1}, .forces = 1}),
      named("exclusive, two slots and shared", {.limits = {1, 2, kShared}}),
      named("two slots for three, data loss", {.limits = {2, 2, 2}, .losses = 1}),
      named("once: three, a failure", {.works = three(key("k")), .failures = 1}),
      named("once: two keys, forgotten", {.works = {key("k"), key("l")}, .forgets = 2}),
      named("once: three give up after a failure", {.works = three(key("k", 1)), .failures = 1}),
      named("once: two, a fault", {.works = two(key("k")), .faults = 1}),
      named("once: one, a fault, forgotten",
            {.works = {key("k")}, .rounds = 2, .faults = 1, .forgets = 1}),
      named("once: two, data loss and an operator",
            {.works = two(key("k")), .losses = 1, .forces = 1}),
      named("once: three within a distance", {.works = three(within(12'000))}),
      named("once: slots behind an exclusive one",
            {.limits = {1, 2, 2}, .works = {{}, key("k"), key("k")}}),
      named("supersede: numbers", {.works = numbers(3)}),
      named("supersede: the last one", {.works = three(newest())}),
      named("supersede: twice each, data loss", {.works = numbers(2), .rounds = 2, .losses = 1}),
      named("supersede: two slots", {.limits = {1, 2, 2}, .works = {{}, newest("1"), newest("2")}}),
      named("closed: two, twice each", {.limits = {1, 1}, .rounds = 2, .closures = 1}),
      named("closed: once, forgotten, an operator",
            {.works = two(key("k")), .forces = 1, .forgets = 1, .closures = 1}),
      named("at rest: two, a fault", {.limits = {1, 1}, .faults = 1, .rest = true}),
      named("at rest: three", {.limits = {1, 1, 1}, .rest = true}),
      named("at rest: two, twice each, data loss",
            {.limits = {1, 1}, .rounds = 2, .losses = 1, .rest = true}),
  };
  return list;
}

const std::vector<Bounds>& large_bounds() {
  static const std::vector<Bounds> list{
      named("two clients, data loss and a fault", {.limits = {1, 1}, .faults = 1, .losses = 1}),
      named("two clients, an operator and a fault", {.limits = {1, 1}, .faults = 1, .forces = 1}),
      named("three clients, data loss", {.limits = {1, 1, 1}, .losses = 1}),
      named("two clients, twice each, one fault", {.limits = {1, 1}, .rounds = 2, .faults = 1}),
      named("three clients, one fault", {.limits = {1, 1, 1}, .faults = 1}),
      named("exclusive, two slots and shared, one fault", {.limits = {1, 2, kShared}, .faults = 1}),
      named("two clients, two faults", {.limits = {1, 1}, .faults = 2}),
      named("closed, large: exclusive, two slots and shared",
            {.limits = {1, 2, kShared}, .closures = 1}),
      named("closed, large: two, a fault", {.limits = {1, 1}, .faults = 1, .closures = 1}),
      named("once, large: two twice each, a failure, forgotten",
            {.works = two(key("k")), .rounds = 2, .forgets = 1, .failures = 1}),
      named("once, large: two, a fault, a failure, forgotten",
            {.works = two(key("k")), .faults = 1, .forgets = 1, .failures = 1}),
      named("once, large: two twice each, a fault",
            {.works = two(key("k", 1)), .rounds = 2, .faults = 1, .failures = 1}),
      named("once, large: three, a fault", {.works = three(key("k")), .faults = 1}),
      named("once, large: two within a distance, a fault",
            {.works = two(within(12'000)), .faults = 1}),
      named("once, large: two, data loss, forgotten, a fault",
            {.works = two(key("k")), .faults = 1, .losses = 1, .forgets = 1}),
      named("supersede, large: behind others", {.works = {{}, {}, newest("1"), newest("2")}}),
      named("supersede, large: three, a fault", {.works = numbers(3), .faults = 1}),
      named("supersede, large: the last one, a fault", {.works = three(newest()), .faults = 1}),
      named("supersede, large: two slots, a fault",
            {.limits = {1, 2, 2}, .works = {{}, newest("1"), newest("2")}, .faults = 1}),
  };
  return list;
}

// RLOCK_MODEL_BOUNDS: `large`, or how names begin; else those of every test run.
std::vector<Bounds> chosen_bounds() {
  const char* asked = std::getenv("RLOCK_MODEL_BOUNDS");
  if (asked == nullptr) return usual_bounds();
  if (std::string(asked) == "large") return large_bounds();
  std::vector<Bounds> named;
  for (const auto* list : {&usual_bounds(), &large_bounds()}) {
    std::copy_if(list->begin(), list->end(), std::back_inserter(named),
                 [&](const Bounds& bound) { return std::string(bound.name).starts_with(asked); });
  }
  return named;
}

// ---- mutants ----

// A rule of the scripts left out, what it breaks, and the smallest bounds in which that shows.
struct Mutant {
  const char* rule;
  const char* breaks;
  Bounds within;
  std::vector<test::TextChange> change;
};
Mutant mutant(const char* rule, const char* breaks, const Bounds& within,
              const std::vector<test::TextChange>& change) {
  return {rule, breaks, within, change};
}

const Bounds kPlain{.limits = {1, 1, 1}};
const Bounds kFault{.limits = {1, 1}, .faults = 1};
const Bounds kLoss{.limits = {1, 1}, .rounds = 2, .losses = 1};
const Bounds kOperator{.limits = {1, 1}, .forces = 1};
const Bounds kOperatorAndFault{.limits = {1, 1}, .faults = 1, .forces = 1};
const Bounds kMixed{.limits = {1, 2, kShared}};
const Bounds kSlotsAndLoss{.limits = {2, 2, 2}, .losses = 1};
const Bounds kClosable{.limits = {1, 1}, .closures = 1};
const Bounds kRestFault{.limits = {1, 1}, .faults = 1, .rest = true};
const Bounds kRestThree{.limits = {1, 1, 1}, .rest = true};
const Bounds kOne{.works = {key("k")}, .failures = 1};
const Bounds kOneForgotten{.works = {key("k")}, .faults = 1, .forgets = 1};
const Bounds kOneForced{.works = {key("k")}, .forces = 1};
const Bounds kTwo{.works = two(key("k")), .failures = 1};
const Bounds kTwoWithFault{.works = two(key("k")), .faults = 1};
const Bounds kBehindTwo{.works = {key("k"), {}, {}, key("k")}};
const Bounds kSlots{.limits = {1, 2, 2}, .works = {{}, key("k"), key("k")}};
const Bounds kGivesUp{.works = two(key("k", 1)), .failures = 1};
const Bounds kGivesUpWithFault{.works = two(key("k", 1)), .faults = 1};
const Bounds kDistance{.works = two(within(12'000)), .rounds = 2};
const Bounds kNumbers{.works = numbers(3)};
const Bounds kLast{.works = three(newest())};
const Bounds kLastAndFault{.works = {{}, newest(), newest()}, .faults = 1};
const Bounds kNumbersOnSlots{.limits = {1, 2, 2}, .works = {{}, newest("1"), newest("2")}};

const std::vector<Mutant> kMutants{
    mutant("put back although taken since", "F:", {.limits = {1, 1}, .rounds = 2, .faults = 1},
           {{"if since > token then return 'taken' end", ""}}),
    mutant("put back though there is no room", "M:", {.limits = {2, kShared, kShared}, .losses = 1},
           {{"if not s.fits(limit, true) then return 'full' end", ""}}),
    mutant("no tombstones", "L:", kFault,
           {{"call('ZADD', RELEASED, kept_until * 16 + (before and math.max(kind, "
             "s.kind_of(before) or kind) or kind), owner)",
             ""}}),
    mutant("limits as first-come", "M:", kMixed, {{"math.min(limit, least)", "limit"}}),
    mutant("the token counts from the counter alone", "F:", kLoss,
           {{"math.max(meta.last + 1, now_us)", "meta.last + 1"}}),
    mutant("last come, first served", "Q:", kPlain,
           {{"local head = call('ZRANGE', QUEUE, 0, 0)[1]",
             "local head = call('ZRANGE', QUEUE, -1, -1)[1]"}}),
    mutant("a newcomer overtakes the queue", "Q:", kMixed,
           {{"waiters == 0 and not blocked and", "not blocked and"}}),
    mutant("a grant needs no claim", "L:", kPlain, {{"now + 2000", "now + line.ttl"}}),
    mutant("a claim does not extend the grant", "M:", kPlain,
           {{"local its_end = math.max(held, now + ttl)", "local its_end = held"}}),
    mutant("a renewal does not extend the lease", "M:", kPlain,
           {{"local ends = math.max(held, now + ttl)", "local ends = held"}}),
    mutant("force-unlock does not count the revoked holder", "M:", kOperator,
           {{"if line.responsive ~= '0' and when ~= 'now' then", "if false then"}}),
    mutant("a revoked holder renews", "O:", kOperator,
           {{"if line.state == 'revoked' then\n    reply = s.lost",
             "if false then\n    reply = s.lost"}}),
    mutant("a forced-out owner is put back", "O:", kOperatorAndFault,
           {{"if end_kind and end_kind > 1 then return s.ended_as(end_kind) end",
             "if end_kind and end_kind > 1 and end_kind ~= 7 then return s.ended_as(end_kind) end"},
            {"if call('HEXISTS', WHO, '!' .. owner) == 1 then return 'forced' end", ""}}),
    mutant("a released owner is put back", "L:", kOperatorAndFault,
           {{"if end_kind and end_kind > 1 then return s.ended_as(end_kind) end", ""}}),
    mutant(
        "a forced owner comes back with the lease that lapsed", "O:", kOperator,
        {{"ends = call('ZMSCORE', RELEASED, owner, owner .. ':0')\n  reply = s.ended_reply(ends)",
          ""}}),
    mutant("a revoked grant is claimed", "O:", kOperator,
           {{"if line.state == 'revoked' then\n    reply = {'gone'",
             "if false then\n    reply = {'gone'"}}),
    mutant("ended leases are not swept", "L:", kFault,
           {{"local function sweep_holders()\n",
             "local function sweep_holders()\n  do return end\n"}}),
    mutant("a waiter is never admitted", "no stuck queue:", kPlain,
           {{"head == excluded or s.n_holders > 0 and not s.fits(line.limit, s.line_word(line, "
             "'while_closed'))",
             "true"}}),
    mutant("a renewal extends every lease", "O:", {.limits = {kShared, kShared}},
           {{"reply = {'extended'}",
             "local all = s.lone and {} or call('ZRANGE', HOLDERS, 0, -1)\nfor _, o in ipairs(all) "
             "do call('ZADD', HOLDERS, ends, o) end\nreply = {'extended'}"}}),
    mutant("two holders of one slot", "S:", {.limits = {2, 2}},
           {{"while used[slot] do slot = slot + 1 end", ""}}),
    mutant("put back although the slot is taken", "S:", kSlotsAndLoss,
           {{"if not why and slot > 0 and s.used_slots()[slot] then why = 'taken' end", ""}}),
    mutant("tombstones without an end", "L:", kPlain, {{"call('PEXPIREAT', RELEASED, ends)", ""}}),
    mutant("the lone hold's key outlives its lease for ever", "L:", kPlain,
           {{", 'PXAT', ends + 2592000000", ""}}),
    // ---- a lock that is closed ----
    mutant("a waiter is granted a closed lock", "C: ", kClosable,
           {{"s.fits(line.limit, s.line_word(line, 'while_closed'))", "s.fits(line.limit, true)"}}),
    mutant("a newcomer is granted a closed lock", "C: ", kClosable,
           {{"s.fits(limit, may_pass)", "s.fits(limit, true)"}}),
    mutant("a lock that is opened stays closed", "C: ", kClosable,
           {{"  s.remove_holder('~closed')\n", ""}, {"  s.forget('~closed')\n", ""}}),
    mutant("a closure ends at once", "C: ", kClosable,
           {{"s.int(ends), record = record}, ends, 0, not before)",
             "s.int(now + 1), record = record}, now + 1, 0, not before)"}}),
    // ---- waiters at rest ----
    mutant("one that has been silent is granted the lock", "H:", kRestFault,
           {{"math.floor(beat) - now <= 15000 * (beat % 1 * 4)", "false"}}),
    mutant("the heartbeat of a waiter at rest is not prolonged", "H:", kRestThree,
           {{"if ticket then beat() end", ""}}),
    mutant("heartbeats do not grow with the slices", "H:", kRestThree,
           {{"now + 15000 * slices +", "now + 15000 +"}}),
    // ---- what is done once ----
    mutant("a success is not marked", "D: a success is not marked", kOne,
           {{"if outcome == 'succeeded' then\n    local", "if false then\n    local"}}),
    mutant("a mark is written at the acquire", "D: key:k is marked without", kOne,
           {{"s.grant(owner, line, grant_until, stamp)",
             "s.grant(owner, line, grant_until, stamp)\n  if what then "
             "s.once_part().mark_done(what, line.token + 0, now, record) end"}}),
    mutant("a failed run is marked", "D: key:k is marked without", kOne,
           {{"if outcome == 'succeeded' then\n    local", "if true then\n    local"}}),
    mutant("a resent release is marked anew", "D: what was forgotten", kOneForgotten,
           {{"if end_kind == 2 then return s.mark_before() end",
             "if end_kind == 2 then return s.note_outcome(nil) end"},
            {"if token <= once.forgotten_token() then return '' end", ""}}),
    mutant("a late success is marked though forgotten since", "D: what was forgotten",
           kOneForgotten, {{"if token <= once.forgotten_token() then return '' end", ""}}),
    mutant("forget forgets what runs now", "D: a success is not marked", kOneForgotten,
           {{"then return line.token - 1 end", "then return math.max(meta.last, now_us) end"}}),
    mutant("to forget one KEY forgets all", "D: the mark of",
           {.works = {key("k"), key("l")}, .forgets = 1},
           {{"if field ~= '' then\n  local mark", "if false then\n  local mark"}}),
    mutant("a run that was forced out is marked", "D: one that was forced out", kOneForced,
           {{"forced and {'absent', 'forced', s.note_of(owner)}",
             "forced and {'absent', 'forced', s.note_of(owner), s.note_outcome(line)}"}}),
    mutant(
        "a lost lease is marked although taken since", "D: marked though", kTwoWithFault,
        {{"if why and not (why == 'full' and (not other or other[4] <= number)) then return '' end",
          ""}}),
    mutant("a free lock is acquired although it is done", "D: B1 is granted", kTwo,
           {{"reply = s.done_reply()\n  if reply then s.leave",
             "reply = nil\n  if reply then s.leave"}}),
    mutant("a waiter starts although it is done", "D: B1 is granted", kTwo,
           {{"elseif verdict then", "elseif false then"}}),
    mutant("a grant is claimed although it is done", "D: B1 starts", kSlots,
           {{"return not (line and line.state ~= 'granted')", "return not line"}}),
    mutant("waiters whose work is done are not woken", "Q:", kTwo,
           {{"s.wake(owner, s.ended_as(kind))", ""}}),
    mutant("failures are not counted", "D: failures", kGivesUp,
           {{"mark.failures, mark.failed = failures_of(what, mark) + 1, what.asked", ""}}),
    mutant("one that died did not fail", "D: failures", kGivesUpWithFault,
           {{"if what then s.once_part().note_failure(what) end\n  s.add", "s.add"}}),
    mutant("one that was put back fails twice", "D: failures", kGivesUpWithFault,
           {{"s.add_tombstone(owner .. ':counted', 0)", ""}}),
    mutant("one that died after it was put back did not fail", "D: failures",
           {.works = {key("k", 1), {}}, .faults = 1, .losses = 1},
           {{"s.with_slot(s.words_again(since), slot)", "s.with_slot('', slot)"}}),
    mutant("failures outlive the success", "D: failures",
           {.works = two(key("k", 2)), .failures = 1}, {{"mark.failures, mark.failed = 0, 0", ""}}),
    mutant("what was granted after one asked is not done",
           "D: ", {.works = {{}, within(12'000), within(12'000)}},
           {{"return mark.granted > what.asked or", "return"}}),
    mutant("the distance counts from the grant", "D: done without", kDistance,
           {{"mark.asked > what.asked - what.span", "mark.granted > what.asked - what.span"}}),
    mutant("the lock is handed to a waiter whose work is done", "D: ", kBehindTwo,
           {{"local verdict = what and", "local verdict = false and"}}),
    // ---- what supersedes others ----
    mutant("one with a smaller number replaces a greater one", "P: ", kNumbers,
           {{"older = number < its", "older = false"}}),
    mutant("both stay in the queue", "P: two", kLast, {{"if other then replace(other) end", ""}}),
    mutant("it goes to the end of the queue", "P: the place", kLast,
           {{"at = at > 0 and math.min(at, taken) or taken", "at = s.issue()"}}),
    mutant("one that was replaced may come back", "L: ", kLast,
           {{"  s.add_tombstone(owner, kind)\n  if note", "  if note"}}),
    mutant("one that was replaced is not woken", "Q: ", kLast,
           {{"s.wake(owner, s.ended_as(kind))", ""}}),
    mutant("an older one runs after a newer one", "P: an older one starts", kNumbers,
           {{"if newest and newest.token > number then return {'superseded', newest.record} end",
             ""}}),
    mutant("a claim does not count as the newest", "P: an older one starts", kNumbers,
           {{"if supersedes then supersedes.note_newest(tonumber(line.token)) end", ""}}),
    mutant("an overtaken grant is claimed", "P: an older one starts", kNumbersOnSlots,
           {{"reply = supersedes and supersedes.overtaken(line)", "reply = nil"}}),
    mutant("a holder is replaced", "O: ", kLast,
           {{"and s.queue_ticket(other) and s.read_line",
             "and (s.queue_ticket(other) or s.held_until(other)) and s.read_line"}}),
    mutant("a put-back loses the number", "P: an older one starts",
           {.works = numbers(2), .losses = 1},
           {{"    s.once_part().note_number(tonumber(args.supersede), record)\n", ""}}),
    mutant("one that comes back counts as the last one",
           "P: ", {.works = {{}, newest(), newest()}, .losses = 1},
           {{"older = given_ticket > 0 and given_ticket <=", "older = false and given_ticket <="}}),
    mutant("one that has the newer one's ticket replaces it", "P: ", kLastAndFault,
           {{"given_ticket <= tonumber(s.queue", "given_ticket < tonumber(s.queue"}}),
    mutant("a claim without a number is not noted", "P: an older one comes back", kLastAndFault,
           {{"if supersedes then supersedes.note_newest(tonumber(line.token)) end", ""}})};

}  // namespace

TEST_CASE("the scripts keep every invariant in every order of events within the bounds") {
  const std::vector<Bounds> all = chosen_bounds();
  REQUIRE_FALSE(all.empty());
  for (const Bounds& bound : all) {
    Findings findings = explore(bound);
    MESSAGE(bound.name, ": ", findings.text());
    CHECK(findings.broken.empty());
  }
}

TEST_CASE("each rule that is left out breaks its invariant") {
  for (const Mutant& mutant : kMutants) {
    const Findings findings = explore(mutant.within, mutant.change);
    const std::string text = std::string(mutant.rule) + ": " + findings.text();
    CHECK_MESSAGE(findings.broken.starts_with(mutant.breaks), text);
    MESSAGE(text);
  }
}

}  // namespace rlock::model
