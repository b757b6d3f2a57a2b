#include "simulation/mutants.hpp"

namespace rlock::sim {

namespace {

using enum ClientRule;

const std::vector<Mutant> kMutants{
    {"the lease is not renewed", "one_server", Check::exclusion, {renews}},
    {"no guard", "one_server", Check::exclusion, {has_a_guard}},
    {"neither rlock nor the guard looks at the lease",
     "one_server",
     Check::exclusion,
     {ends_the_command_in_time}},
    {"the token of the majority is not written back",
     "quorum_of_3",
     Check::tokens,
     {writes_the_token_back}},
    {"members that restarted empty count at once",
     "quorum_storm",
     Check::exclusion,
     {passes_over_members_that_restarted}},
    {"one member is enough", "quorum_of_3", Check::exclusion, {needs_a_majority}},
    {"a release needs no owner",
     "one_server",
     Check::exclusion,
     {none,
      {{"local sole = ended and lone_owner == owner and lone_end",
        "local sole = ended and lone_end"}}}},
    {"a renewal extends nothing",
     "one_server",
     Check::exclusion,
     {none,
      {{"local ends = math.max(now + ttl, tonumber(lone_end))", "local ends = tonumber(lone_end)"},
       {"local ends = math.max(write_entries(owner, entries), tonumber(held_until(owner)))",
        "local ends = tonumber(held_until(owner))"}}}},
    {"there is always room for one more",
     "modes",
     Check::exclusion,
     {none, {{"if n_holders == 0 then return true end", "do return true end"}}}},
    {"shared ones count for nothing",
     "modes",
     Check::exclusion,
     {none, {{"<= math.min(limit, least)", "<= limit"}}}},
    {"tokens come from the clock alone",
     "clock_back",
     Check::tokens,
     {none,
      {{"math.max(last + 1, now_us)", "now_us"}, {"math.max(meta.last + 1, now_us)", "now_us"}}}},
    {"who comes last is served first",
     "one_server",
     Check::order,
     {none,
      {{"call('ZRANGE', QUEUE, 0, 1))", "call('ZRANGE', QUEUE, -1, -1))"},
       {"local head = call('ZRANGE', QUEUE, 0, 0)[1]\n      if not head",
        "local head = call('ZRANGE', QUEUE, -1, -1)[1]\n      if not head"}}}},
    {"a newcomer passes those who wait",
     "modes",
     Check::order,
     {none, {{"if waiters == 0 and fits(limit)", "if fits(limit)"}}}},
    {"a released owner leaves no tombstone",
     "one_server",
     Check::prompt,
     {none,
      {{"call('ZADD', RELEASED, tombstone, owner)", ""},
       {"add_tombstone(owner, forced and FORCED or kind, ends)", ""}}}},
    {"nobody is woken",
     "one_server",
     Check::prompt,
     {none, {{"if head then push_wake(head, 'granted') end", ""}, {"wake(head, 'granted')", ""}}}},
    {"tombstones have no end",
     "one_server",
     Check::left,
     {none,
      {{"call('PEXPIREAT', RELEASED, int(released))", ""},
       {"call('PEXPIREAT', RELEASED, remembered)", ""}}}},
    {"the memory of a lock has no end",
     "one_server",
     Check::left,
     {none,
      {{"call('SET', META, text, 'PXAT', now + META_LIFE)", "call('SET', META, text)"},
       {"call('PEXPIREAT', META, int(math.max(now + META_LIFE, holders)))", ""},
       {"local function touch() call('PEXPIREAT', META, int(now + META_LIFE)) end",
        "local function touch() end"}}}},
};

}  // namespace

const std::vector<Mutant>& mutants() {
  return kMutants;
}

}  // namespace rlock::sim
