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
    mutant("neither rlock nor the guard looks at the lease", "one_server", Check::exclusion,
           ends_the_command_in_time),
    mutant("the client's clock is as fast as the server's", "long_leases", Check::exclusion,
           allows_for_drift),
    mutant("the token of the majority is not written back", "quorum_of_3", Check::tokens,
           writes_the_token_back),
    mutant("members that restarted empty count at once", "quorum_storm", Check::exclusion,
           passes_over_members_that_restarted),
    mutant("a command starts before replicas have confirmed its grant", "confirmed",
           Check::exclusion, starts_when_confirmed),
    mutant("renewals that no replica has confirmed count", "confirmed", Check::exclusion,
           believes_confirmed_renewals_alone),
    mutant("what is granted during a failover counts", "confirmed", Check::exclusion,
           waits_for_the_end_of_a_failover),
    mutant("one member is enough", "quorum_of_3", Check::exclusion, needs_a_majority),
    mutant("a success leaves no mark at a majority", "once_quorum", Check::repeated,
           {{"if outcome == 'succeeded' then", "if false then"}}),
    mutant("a release needs no owner", "one_server", Check::exclusion,
           {{"or 3\nlocal held = first_holder == owner and",
             "or 3\nlocal held = (lone or first_holder == owner) and"}}),
    mutant("a renewal extends nothing", "one_server", Check::exclusion,
           {{"local ends = math.max(held, now + ttl)", "local ends = held"}}),
    mutant("there is always room for one more", "modes", Check::exclusion,
           {{"if s.n_holders == 0 then return true end", "do return true end"},
            {"and not blocked and (s.n_holders", "and (s.n_holders"}}),
    mutant("shared ones count for nothing", "modes", Check::exclusion,
           {{"<= math.min(limit, least)", "<= limit"}}),
    mutant("tokens come from the clock alone", "clock_back", Check::tokens,
           {{"math.max(meta.last + 1, now_us)", "now_us"}}),
    mutant("who comes last is served first", "one_server", Check::order,
           {{"local head = call('ZRANGE', QUEUE, 0, 0)[1]\n    if not head",
             "local head = call('ZRANGE', QUEUE, -1, -1)[1]\n    if not head"}}),
    mutant("a newcomer passes those who wait", "modes", Check::order,
           {{"waiters == 0 and not blocked and", "not blocked and"}}),
    mutant("a released owner leaves no tombstone", "one_server", Check::prompt,
           {{"s.add_tombstone(owner, forced and 7 or kind, nil, before)", ""}}),
    mutant("nobody is woken", "one_server", Check::prompt, {{"s.wake(head, 'granted')", ""}}),
    mutant("tombstones have no end", "one_server", Check::left,
           {{"call('PEXPIREAT', RELEASED, ends)", ""}}),
    mutant("the memory of a lock has no end", "one_server", Check::left,
           {{"call('SET', META, text, 'PXAT', longest)", "call('SET', META, text)"},
            {"function s.touch() call('PEXPIREAT', META,", "function s.touch() math.max("}}),
    mutant("what is done is done again", "once", Check::repeated,
           {{"if is_done(what, mark) then", "if false then"}}),
    mutant("a success leaves no mark", "once", Check::repeated,
           {{"if outcome == 'succeeded' then", "if false then"}}),
    mutant("a distance counts from the end of the run alone", "once", Check::repeated,
           {{"return mark.granted > what.asked or mark.asked > what.asked - what.span",
             "return mark.granted > what.asked"}}),
    mutant("a run that failed counts as done", "once", Check::done,
           {{"if outcome == 'succeeded' then", "if outcome then"}}),
    mutant("a distance has no end", "once", Check::done,
           {{"return mark.granted > what.asked or mark.asked > what.asked - what.span",
             "return true"}}),
    mutant("an operator forgets nothing", "once", Check::done,
           {{"call('HDEL', ONCE, unpack(old))", "call('HLEN', ONCE)"}}),
    mutant("what runs is forgotten, too", "once", Check::repeated,
           {{"then return line.token - 1 end", "then return line.token + 0 end"}}),
    mutant("failures are not counted", "crontabs", Check::repeated,
           {{"failures_of(what, mark) + 1, what.asked", "0, what.asked"}}),
    mutant("an older one that is retried wins", "supersede", Check::newest,
           {{"if newest and newest.token > number then", "if false then"}}),
    mutant(
        "the newest waits at the end of the queue", "supersede", Check::newest,
        {{"    return ticket\n  end\n\n  -- An older", "    return nil\n  end\n\n  -- An older"}}),
    mutant("all that supersede others wait", "supersede", Check::newest,
           {{"if other then replace(other) end\n    local waits", "local waits"}}),
    mutant("a holder that is broken counts no longer", "operators", Check::exclusion,
           {{"if line.responsive ~= '0' and when ~= 'now' then", "if false then"}}),
    mutant("a holder does not learn that it was broken", "operators", Check::broken,
           {{"s.wake(owner, 'revoked')\n  if line", "if line"}}),
    mutant("a closure keeps the lock from no waiter", "operators", Check::closed,
           {{"s.fits(line.limit, s.line_word(line, 'while_closed'))", "s.fits(line.limit, true)"}}),
    mutant("a closure keeps the lock from no newcomer", "operators", Check::closed,
           {{"s.fits(limit, may_pass)", "s.fits(limit, true)"}}),
    mutant("nobody passes a closure", "closures", Check::prompt,
           {{"local may_pass = args.while_closed", "local may_pass = nil"}}),
    mutant("a lock that is opened stays closed", "closures", Check::order,
           {{"  s.remove_holder('~closed')\n", ""}, {"  s.forget('~closed')\n", ""}}),
    mutant("an urgent one waits like others", "places", Check::order,
           {{"if args.earlier then", "if false then"}}),
    mutant("an urgent one counts as if it had come much earlier", "places", Check::order,
           {{"now_us) - args.earlier)", "now_us) - 4 * args.earlier)"}}),
    mutant("a lock that is released is free at once", "places", Check::min_hold,
           {{"if line.min_hold > 0 and not unused then s.start_cooldown(owner, line) end", ""}}),
    mutant("a lock whose holder died is free at once", "places", Check::min_hold,
           {{"if line then s.start_cooldown(owner, line) end", ""}})};

}  // namespace

const std::vector<Mutant>& mutants() {
  return kMutants;
}

}  // namespace rlock::sim
