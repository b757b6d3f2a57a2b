#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "contract/lab.hpp"

namespace rlock::contract {

const std::vector<Named>& end_cases();
const std::vector<Named>& mode_cases();
const std::vector<Named>& crowd_cases();
const std::vector<Named>& server_cases();
const std::vector<Named>& history_cases();
const std::vector<Named>& quorum_cases();

const std::vector<Named>& cases() {
  static const std::vector<Named> all = [] {
    std::vector<Named> list;
    for (auto* part : {&end_cases(), &mode_cases(), &crowd_cases(), &server_cases(),
                       &history_cases(), &quorum_cases()}) {
      list.insert(list.end(), part->begin(), part->end());
    }
    return list;
  }();
  return all;
}

namespace {

// What went wrong; empty when the case holds.
std::string verdict(const Named& named, const std::vector<Mutation>& mutations = {}) {
  Lab lab(mutations);
  if (!lab.mutations_applied()) return "";
  try {
    named.run(lab);
  } catch (const Broken& broken) {
    return broken.what();
  }
  return "";
}

// A rule of the scripts left out, and the number or words of a case that must turn red.
struct Mutant {
  const char* rule;
  std::vector<Mutation> change;
  const char* caught_by;
};

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> list{
      {"put back although taken since", {{"if since > token then return 'taken' end", ""}}, "5:"},
      {"no tombstones", {{"call('ZADD', RELEASED, int(keep * 8 + kind), owner)", ""}}, "1:"},
      {"limits as first-come", {{"math.min(limit, least)", "limit"}}, "the least limit rules"},
      {"wake before state",
       {{"local function wake(owner, word) wakes[#wakes + 1] = {owner, word} end",
         "local function wake(owner, word) call('RPUSH', BASE .. 'wake:' .. owner, word) end"}},
       "12: a wake"},
      {"sweep without more",
       {{"more = more or #dead == SWEEP", ""}, {"  more = true\nend", "end"}},
       "14:"},
      {"put back without a token",
       {{"if token == 0 then return buried and 'expired' or 'deleted' end", ""}},
       "without a token"},
      {"put back what was deleted by hand",
       {{"if not buried and meta.grant >= token and meta.created <= token then return 'deleted' "
         "end",
         ""}},
       "a lock deleted"},
      {"a revoked holder is freed after a grace",
       {{"if line and line.attended == '1' and pace ~= 'now' then", "if false then"}},
       "19: a revoked holder"},
      {"the first write of a renewal needs memory",
       {{"touch()\nlocal reply", "local reply"}},
       "11:"},
      {"no nudge for the new head", {{"wake(head, 'look')", ""}}, "15: the receiver"},
      {"a missed claim always keeps the place",
       {{"ticket == 0 or missed == REQUEUED", "ticket == 0"}},
       "17:"},
      {"a missed claim never keeps the place",
       {{"local ticket, missed = tonumber(brought)", "local ticket, missed = 0"}},
       "17:"},
      {"limits are not rebuilt", {{"  rebuild_limits()\nend", "end"}}, "13: with the limits"},
      {"a head without a heartbeat is served",
       {{"tonumber(call('ZSCORE', ALIVE, head) or 0) <= now", "false"}},
       "13: a head"},
      {"keys expire with the lease that ends first",
       {{"call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]",
         "call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]"},
        {"local GRACE = 60000", "local GRACE = 0"}},
       "10:"},
      {"the token counts from the counter alone",
       {{"math.max(meta.last + 1, now_us)", "meta.last + 1"}},
       "a flushed lock"},
      {"min-hold for an unclaimed grant",
       {{"line.state ~= 'held' or ends <= now", "ends <= now"}},
       "16: a grant"},
      {"entries without a lease of their own",
       {{"return math.min(ttl, INNER_LEASE)", "return ttl"}},
       "an inner run's lease"},
      {"an older attempt is heeded",
       {{"return stamp > 0 and stamp < stamp_of(owner)", "return false"},
        {"stamp > 0 and stamp <= stamp_of(owner)", "false"}},
       "20: the bytes of an older attempt"},
      {"a give-back of an unknown owner is forgotten",
       {{"local function yield(line)\n  note_stamp(owner, stamp)", "local function yield(line)"}},
       "20: an acquire later"},
      {"a write-back without the owner check",
       {{"if not fits(limit) then return 'full' end", ""}},
       "20: a late write-back"},
      {"the token is not written back",
       {{"meta.last = math.max(meta.last, token)\n  note_grant(token, line)\nend",
         "note_grant(token, line)\nend"}},
       "20: the token of the majority"},
      {"a grant of one server counts as one",
       {{"if stamp_of(owner) == 0 then note_grant(line.token, line) end",
         "note_grant(line.token, line)"}},
       "20: a grant that was given back"},
      {"whoever gives back is granted at once", {{"head ~= aside and ", ""}}, "20: who gives back"},
      {"the server's own ticket",
       {{"if stamp == 0 then\n    if", "if true then\n    if"}},
       "20: the client's ticket"},
  };
  return list;
}

}  // namespace

TEST_CASE("the scripts keep every rule of the native protocol") {
  for (const Named& named : cases()) {
    const std::string broken = verdict(named);
    CHECK_MESSAGE(broken.empty(), std::string(named.name), ": ", broken);
  }
}

TEST_CASE("each rule left out of the scripts turns its case red") {
  for (const Mutant& mutant : mutants()) {
    auto named = std::find_if(cases().begin(), cases().end(), [&](const Named& n) {
      return std::string(n.name).starts_with(mutant.caught_by);
    });
    REQUIRE_MESSAGE(named != cases().end(), std::string(mutant.caught_by));
    REQUIRE_MESSAGE(BentScripts(mutant.change).all_applied(), std::string(mutant.rule),
                    ": no place to change");
    const std::string broken = verdict(*named, mutant.change);
    CHECK_MESSAGE(!broken.empty(), std::string(mutant.rule), " is not caught by ",
                  std::string(named->name));
  }
}

}  // namespace rlock::contract
