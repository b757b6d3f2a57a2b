// The native protocol as a whole: every order in which a few clients, faults and operators may act,
// over the real scripts and keys in memory. A wake is a hint that may get lost here at any time, so
// that it does not show when a wake comes before the state it reports: tests/contract shows that.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>

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
      named("lock: two clients, a fault", {.limits = {1, 1}, .faults = 1}),
      named("lock: two clients, an operator", {.limits = {1, 1}, .forces = 1}),
      named("lock: two clients, twice each, data loss",
            {.limits = {1, 1}, .rounds = 2, .losses = 1}),
      named("lock: three clients, an operator", {.limits = {1, 1, 1}, .forces = 1}),
      named("lock: exclusive, two slots and shared", {.limits = {1, 2, kShared}}),
      named("lock: two slots for three, data loss", {.limits = {2, 2, 2}, .losses = 1}),
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
      named("lock, large: two clients, data loss and a fault",
            {.limits = {1, 1}, .faults = 1, .losses = 1}),
      named("lock, large: two clients, an operator and a fault",
            {.limits = {1, 1}, .faults = 1, .forces = 1}),
      named("lock, large: three clients, data loss", {.limits = {1, 1, 1}, .losses = 1}),
      named("lock, large: two clients, twice each, one fault",
            {.limits = {1, 1}, .rounds = 2, .faults = 1}),
      named("lock, large: three clients, one fault", {.limits = {1, 1, 1}, .faults = 1}),
      named("lock, large: exclusive, two slots and shared, one fault",
            {.limits = {1, 2, kShared}, .faults = 1}),
      named("lock, large: two clients, two faults", {.limits = {1, 1}, .faults = 2}),
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

// RLOCK_MODEL_BOUNDS: how their names begin; else those of every test run.
std::vector<Bounds> chosen_bounds() {
  const char* asked = std::getenv("RLOCK_MODEL_BOUNDS");
  if (asked == nullptr) return usual_bounds();
  std::vector<Bounds> named;
  for (const auto* list : {&usual_bounds(), &large_bounds()}) {
    std::copy_if(list->begin(), list->end(), std::back_inserter(named),
                 [&](const Bounds& bound) { return std::string(bound.name).starts_with(asked); });
  }
  return named;
}

// RLOCK_MODEL_STATES: the number of states at which each search is cut.
size_t most_states() {
  const char* asked = std::getenv("RLOCK_MODEL_STATES");
  return asked == nullptr ? SIZE_MAX : std::stoull(asked);
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
const Bounds kLoss{.limits = {1, 1}, .rounds = 2, .losses = 1};
const Bounds kClosable{.limits = {1, 1}, .closures = 1};
const Bounds kRestThree{.limits = {1, 1, 1}, .rest = true};
const Bounds kOne{.works = {key("k")}, .failures = 1};
const Bounds kOneForgotten{.works = {key("k")}, .faults = 1, .forgets = 1};
const Bounds kLast{.works = three(newest())};
const Bounds kLastAndFault{.works = {{}, newest(), newest()}, .faults = 1};

const std::vector<Mutant> kMutants{
    mutant("the server issues tokens without its clock", "F:", kLoss,
           {{"math.max(memory.last + 1, now_us)", "memory.last + 1"}}),
    mutant("the server grants the lock to the last waiter", "Q:", kPlain,
           {{"call('ZRANGE', QUEUE, 0, 0)[1]", "call('ZRANGE', QUEUE, -1, -1)[1]"}}),
    mutant("the server grants a full lease that no waiter has claimed", "L:", kPlain,
           {{"now + 2000", "now + line.ttl"}}),
    mutant(
        "the server answers a renewal and extends no lease", "M:", kPlain,
        {{"math.max(entries[entry] or 0, lease_of(entry))", "entries[entry] or lease_of(entry)"}}),
    mutant("the server admits no waiter", "no stuck queue:", kPlain,
           {{"head == excluded or M.words.unknown_rules(line) or not M.slots.fits(line.limit, "
             "line.while_closed)",
             "true"}}),
    mutant("the server extends every lease at one renewal", "O:", {.limits = {kShared, kShared}},
           {{"return {'extended'}",
             "for _, o in ipairs(call('ZRANGE', HOLDERS, 0, -1)) do "
             "call('ZADD', HOLDERS, now + ttl, o) end return {'extended'}"}}),
    mutant("the server gives one slot to two holders", "S:", {.limits = {2, 2}},
           {{"while used[line.slot] do line.slot = line.slot + 1 end", ""}}),
    mutant("the server grants a closed lock to a waiter", "C: ", kClosable,
           {{"fits(line.limit, line.while_closed)", "fits(line.limit, true)"}}),
    mutant("the server expects the heartbeat of an idle waiter too soon", "H:", kRestThree,
           {{"now + 15000 * slices", "now + 15000"}}),
    mutant("the server does not record a success", "D: a success is not marked", kOne,
           {{"if args.outcome == 'succeeded' then", "if false then"}}),
    mutant("the server records a late success that was forgotten since", "D: what was forgotten",
           kOneForgotten, {{"if token <= memory.forgotten then return '' end", ""}}),
    mutant("the server keeps a superseded waiter in the queue", "P: two", kLast,
           {{"if other then replace(other) end", ""}}),
    mutant("the server does not note the claim of an owner without a number",
           "P: an older one comes back", kLastAndFault,
           {{"if request.supersedes then M.supersede.note_newest(line.token) end", ""}})};

}  // namespace

TEST_CASE("the scripts keep every invariant in every order of events within the bounds") {
  const std::vector<Bounds> all = chosen_bounds();
  REQUIRE_FALSE(all.empty());
  for (const Bounds& bound : all) {
    Findings findings = explore(bound, {}, most_states());
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
