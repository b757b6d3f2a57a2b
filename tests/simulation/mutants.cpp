#include "simulation/mutants.hpp"

namespace rlock::sim {

namespace {

using enum ClientRule;

Mutant mutant(const char* name, const char* world, Check noticed, ClientRule rule) {
  return {name, world, noticed, {rule, {}}};
}
Mutant mutant(const char* name, const char* world, Check noticed,
              const std::vector<test::TextChange>& changes) {
  return {name, world, noticed, {none, changes}};
}

const std::vector<Mutant> kMutants{
    mutant("the lease is not renewed", "one_server", Check::exclusion, renews),
    mutant("no guard", "one_server", Check::exclusion, has_a_guard),
    mutant("neither rlock nor the guard checks the lease", "one_server", Check::exclusion,
           ends_the_command_in_time),
    mutant("the client ignores that its clock may be slow", "long_leases", Check::exclusion,
           allows_for_drift),
    mutant("the token of the majority is not written back", "quorum_of_3", Check::tokens,
           writes_the_token_back),
    mutant("servers of a quorum that restarted empty count immediately", "quorum_storm",
           Check::exclusion, passes_over_members_that_restarted),
    mutant("a command starts before replicas have confirmed its grant", "confirmed",
           Check::exclusion, starts_when_confirmed),
    mutant("renewals that no replica has confirmed count", "confirmed", Check::exclusion,
           believes_confirmed_renewals_alone),
    mutant("a grant during a failover counts", "confirmed", Check::exclusion,
           waits_for_the_end_of_a_failover),
    mutant("one server of a quorum is enough", "quorum_of_3", Check::exclusion, needs_a_majority),
    mutant("a success is not recorded at a majority", "once_quorum", Check::repeated,
           {{"if args.outcome == 'succeeded' then", "if false then"}}),
    mutant("the last waiter is served first", "one_server", Check::order,
           {{"call('ZRANGE', QUEUE, 0, 0)[1]", "call('ZRANGE', QUEUE, -1, -1)[1]"}}),
    mutant("a caller that returns is the last", "returning", Check::order,
           {{"if request.given_ticket > 0 then return request.given_ticket end", ""}}),
    mutant("no waiter is woken", "one_server", Check::prompt,
           {{"M.wakes.add(head, 'granted')", ""}}),
    mutant("tombstones do not expire", "one_server", Check::left,
           {{"RELEASED, HISTORY}", "HISTORY}"}}),
    mutant("finished work is done again", "once", Check::repeated,
           {{"if is_done(work, mark) then", "if false then"}}),
    mutant("a distance never ends", "once", Check::done,
           {{"return mark.granted > work.asked or mark.asked > work.asked - work.span",
             "return true"}}),
    mutant("a retried older run wins", "supersede", Check::newest,
           {{"if number and newest.token > number then", "if false then"}}),
    mutant("the holder of a broken lock is not notified", "operators", Check::broken,
           {{"M.wakes.add(owner, 'revoked')\n  if counts", "if counts"}}),
    mutant("a closed lock is granted to waiters", "operators", Check::closed,
           {{"fits(line.limit, line.while_closed)", "fits(line.limit, true)"}}),
    mutant("a released lock has no cool-down", "places", Check::min_hold,
           {{"if not unused and line.min_hold > 0 then M.cooldowns.start(owner, line) end", ""}})};

}  // namespace

const std::vector<Mutant>& mutants() {
  return kMutants;
}

}  // namespace rlock::sim
