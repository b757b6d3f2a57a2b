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
     {{"if not s.fits(limit, true) then return 'full' end", ""}},
     "M:",
     {"", {2, kShared, kShared}, 1, 0, 1, 0}},
    {"no tombstones",
     {{"call('ZADD', RELEASED, kept_until * 16 + (before and math.max(kind, s.kind_of(before) or "
       "kind) or "
       "kind), owner)",
       ""}},
     "L:",
     kFault},
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
     {{"waiters == 0 and not blocked and", "not blocked and"}},
     "Q:",
     kMixed},
    {"a grant needs no claim", {{"now + 2000", "now + line.ttl"}}, "L:", kPlain},
    {"a claim does not extend the grant",
     {{"local its_end = math.max(held, now + ttl)", "local its_end = held"}},
     "M:",
     kPlain},
    {"a renewal does not extend the lease",
     {{"local ends = math.max(held, now + ttl)", "local ends = held"}},
     "M:",
     kPlain},
    {"force-unlock does not count the revoked holder",
     {{"if line.responsive ~= '0' and when ~= 'now' then", "if false then"}},
     "M:",
     kOperator},
    {"a revoked holder renews",
     {{"if line.state == 'revoked' then\n    reply = s.lost", "if false then\n    reply = s.lost"}},
     "O:",
     kOperator},
    {"a forced-out owner is put back",
     {{"if end_kind and end_kind > 1 then return s.ended_as(end_kind) end",
       "if end_kind and end_kind > 1 and end_kind ~= 7 then return s.ended_as(end_kind) end"},
      {"if call('HEXISTS', WHO, '!' .. owner) == 1 then return 'forced' end", ""}},
     "O:",
     kOperatorAndFault},
    {"a released owner is put back",
     {{"if end_kind and end_kind > 1 then return s.ended_as(end_kind) end", ""}},
     "L:",
     kOperatorAndFault},
    {"a forced owner comes back with the lease that lapsed",
     {{"ends = call('ZMSCORE', RELEASED, owner, owner .. ':0')\n  reply = s.ended_reply(ends)",
       ""}},
     "O:",
     kOperator},
    {"a revoked grant is claimed",
     {{"if line.state == 'revoked' then\n    reply = {'gone'",
       "if false then\n    reply = {'gone'"}},
     "O:",
     kOperator},
    {"ended leases are not swept",
     {{"local function sweep_holders()\n", "local function sweep_holders()\n  do return end\n"}},
     "L:",
     kFault},
    {"a waiter is never admitted",
     {{"head == excluded or s.n_holders > 0 and not s.fits(line.limit, s.line_word(line, "
       "'while_closed'))",
       "true"}},
     "no stuck queue:",
     kPlain},
    {"a renewal extends every lease",
     {{"reply = {'extended'}",
       "local all = s.lone and {} or call('ZRANGE', HOLDERS, 0, -1)\n"
       "for _, o in ipairs(all) do call('ZADD', HOLDERS, ends, o) end\n"
       "reply = {'extended'}"}},
     "O:",
     {"", {kShared, kShared}, 1, 0, 0, 0}},
    {"two holders of one slot",
     {{"while used[slot] do slot = slot + 1 end", ""}},
     "S:",
     {"", {2, 2}, 1, 0, 0, 0}},
    {"put back although the slot is taken",
     {{"if not why and slot > 0 and s.used_slots()[slot] then why = 'taken' end", ""}},
     "S:",
     kSlotsAndLoss},
    {"tombstones without an end", {{"call('PEXPIREAT', RELEASED, ends)", ""}}, "L:", kPlain},
    {"the lone hold's key outlives its lease for ever",
     {{", 'PXAT', ends + 2592000000", ""}},
     "L:",
     kPlain},
};

}  // namespace

TEST_CASE("the scripts keep every invariant in every order of events within the bounds") {
  const std::vector<Bounds> all = chosen_bounds();
  REQUIRE_FALSE(all.empty());
  Server server;
  for (const Bounds& bound : all) {
    Findings findings = explore(server, bound);
    MESSAGE(bound.name, ": ", findings.text());
    CHECK(findings.broken.empty());
  }
}

TEST_CASE("each rule that is left out breaks its invariant") {
  for (const Mutant& mutant : kMutants) check_caught(mutant);
}

}  // namespace rlock::model
