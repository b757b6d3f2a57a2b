// The native protocol as a whole: every order in which a few clients, faults and operators may act,
// over the real scripts on a real server. A wake is a hint that may get lost here at any time, so
// that it does not show when a wake comes before the state it reports: tests/contract shows that.
#include <doctest/doctest.h>

#include "model/bounds.hpp"
#include "model/mutants.hpp"

namespace rlock::model {
namespace {

const Bounds kPlain{"", {1, 1, 1}, 1, 0, 0, 0};
const Bounds kFault{"", {1, 1}, 1, 1, 0, 0};
const Bounds kLoss{"", {1, 1}, 2, 0, 1, 0};
const Bounds kOperator{"", {1, 1}, 1, 0, 0, 1};
const Bounds kOperatorAndFault{"", {1, 1}, 1, 1, 0, 1};
const Bounds kMixed{"", {1, 2, kShared}, 1, 0, 0, 0};
const Bounds kSlotsAndLoss{"", {2, 2, 2}, 1, 0, 1, 0};

const std::vector<Mutant> kMutants{
    {"put back although taken since",
     {{"if since > token then return 'taken' end", ""}},
     "F:",
     {"", {1, 1}, 2, 1, 0, 0}},
    {"put back though there is no room",
     {{"if not fits(limit) then return 'full' end", ""}},
     "M:",
     {"", {2, kShared, kShared}, 1, 0, 1, 0}},
    {"no tombstones", {{"call('ZADD', RELEASED, int(keep * 16 + kind), owner)", ""}}, "L:", kFault},
    {"limits as first-come", {{"math.min(limit, least)", "limit"}}, "M:", kMixed},
    {"the token counts from the counter alone",
     {{"math.max(meta.last + 1, now_us)", "meta.last + 1"}},
     "F:",
     kLoss},
    {"last come, first served",
     {{"local head = call('ZRANGE', QUEUE, 0, 0)[1]",
       "local head = call('ZRANGE', QUEUE, -1, -1)[1]"}},
     "Q:",
     kPlain},
    {"a newcomer overtakes the queue",
     {{"waiters == 0 and fits(limit)", "fits(limit)"}},
     "Q:",
     kMixed},
    {"a grant needs no claim", {{"now + CLAIM", "now + line.ttl"}}, "L:", kPlain},
    {"a claim does not extend the grant",
     {{"math.max(entries['0'] or 0, now + ttl)", "entries['0'] or now + ttl"}},
     "M:",
     kPlain},
    {"a renewal does not extend the lease",
     {{"math.max(entries[entry] or 0, now + lease_of(entry, ttl))", "entries[entry]"}},
     "M:",
     kPlain},
    {"force-unlock does not count the revoked holder",
     {{"if line and line.responsive ~= '0' and when ~= 'now' then", "if false then"}},
     "M:",
     kOperator},
    {"a revoked holder renews",
     {{"if line.state == 'revoked' then return lost('forced', false) end", ""}},
     "O:",
     kOperator},
    {"a forced-out owner is put back",
     {{"if end_kind and end_kind > REQUEUED then return KINDS[end_kind] end",
       "if end_kind and end_kind > REQUEUED and end_kind ~= FORCED then return KINDS[end_kind] "
       "end"},
      {"if call('HEXISTS', WHO, '!' .. owner) == 1 then return 'forced' end", ""}},
     "O:",
     kOperatorAndFault},
    {"a released owner is put back",
     {{"if end_kind and end_kind > REQUEUED then return KINDS[end_kind] end", ""}},
     "L:",
     kOperatorAndFault},
    {"a forced owner comes back with the lease that lapsed",
     {{"if could_end then reply = ended_reply() end", ""}},
     "O:",
     kOperator},
    {"a revoked grant is claimed",
     {{"if line.state == 'revoked' then return {'gone', 'forced', note_of(owner)} end", ""}},
     "O:",
     kOperator},
    {"ended leases are not swept",
     {{"local function sweep_holders()\n", "local function sweep_holders()\n  do return end\n"}},
     "L:",
     kFault},
    {"a waiter is never admitted",
     {{"head == excluded or not fits(line.limit)", "true"}},
     "no stuck queue:",
     kPlain},
    {"a renewal extends every lease",
     {{"call('ZADD', HOLDERS, int(ends), owner)\n  return {'extended'}",
       "for _, o in ipairs(call('ZRANGE', HOLDERS, 0, -1)) do\n"
       "    call('ZADD', HOLDERS, int(ends), o)\n  end\n  return {'extended'}"}},
     "O:",
     {"", {kShared, kShared}, 1, 0, 0, 0}},
    {"two holders of one slot",
     {{"while used[slot] do slot = slot + 1 end", ""}},
     "S:",
     {"", {2, 2}, 1, 0, 0, 0}},
    {"put back although the slot is taken",
     {{"if not why and slot > 0 and used_slots()[slot] then why = 'taken' end", ""}},
     "S:",
     kSlotsAndLoss},
    {"tombstones without an end",
     {{"call('PEXPIREAT', RELEASED, int(released))", ""}},
     "L:",
     kPlain},
};

// What the short ways state again.
const std::vector<Mutant> kShortMutants{
    {"no tombstones", {{"call('ZADD', RELEASED, tombstone, owner)", ""}}, "L:", kFault},
    {"the token of a free lock counts from the counter alone",
     {{"math.max(last + 1, now_us)", "last + 1"}},
     "F:",
     kLoss},
    {"last come, first served",
     {{"unpack(call('ZRANGE', QUEUE, 0, 1))", "unpack(call('ZRANGE', QUEUE, -1, -1))"}},
     "Q:",
     kPlain},
    {"a grant needs no claim",
     {{"claim_by = now + CLAIM", "claim_by = now + 30000"}},
     "L:",
     kPlain},
    {"a claim does not extend the grant",
     {{"math.max(now + ttl, single_end)", "single_end"}},
     "M:",
     kPlain},
    {"a renewal does not extend the lease",
     {{"math.max(now + ttl, tonumber(lone_end))", "lone_end"}},
     "M:",
     kPlain},
    {"a revoked grant is claimed",
     {{"if state == 'granted' or state == 'held' then", "if state then"}},
     "O:",
     kOperator},
    {"the lone hold's key outlives its lease for ever",
     {{", 'PXAT', lease_end + GRACE", ""}},
     "L:",
     kPlain},
    {"tombstones without an end", {{"call('PEXPIREAT', RELEASED, remembered)", ""}}, "L:", kPlain},
};

}  // namespace

TEST_CASE("the scripts keep every invariant in every order of events within the bounds") {
  const std::vector<Bounds> all = chosen_bounds();
  REQUIRE_FALSE(all.empty());
  for (contract::Way way : {contract::Way::usual, contract::Way::short_ways}) {
    Server server(way);
    for (const Bounds& bound : all) {
      if (way == contract::Way::usual && !bound.both_ways) continue;
      Findings findings = explore(server, bound);
      MESSAGE(bound.name, ", ", std::string(name_of(way)), ": ", findings.text());
      CHECK(findings.broken.empty());
    }
  }
}

TEST_CASE("each rule removed from the usual way breaks its invariant") {
  for (const Mutant& mutant : kMutants) check_caught(mutant, contract::Way::usual);
}

TEST_CASE("each rule removed from the short ways breaks its invariant") {
  for (const Mutant& mutant : kShortMutants) check_caught(mutant, contract::Way::short_ways);
}

}  // namespace rlock::model
