#include "contract/mutants.hpp"

namespace rlock::contract {

namespace {

const std::vector<Mutant> kUsualWay{
    {"a mark has the server's own token",
     {{"if number == 0 and line then number", "if line then number"}},
     "the mark of a run"},
    {"what others have forgotten counts",
     {{"if what and (forgotten or '0') ~= '0' then", "if false then"}},
     "what other servers"},
    {"what is later than what others have forgotten is forgotten",
     {{"if mark.ended > 0 and mark.token <= through then", "if mark.ended > 0 then"}},
     "what other servers"},
    {"forget keeps to no agreement",
     {{"all[i] ~= 'waits' and mark.token <= through then", "all[i] ~= 'waits' then"}},
     "a server forgets"},
    {"forget of a key keeps to no agreement",
     {{"if mark.ended == 0 or mark.token <= through then", "if true then"}},
     "a server forgets"},
    {"an agreement of the future is accepted",
     {{"math.min(tonumber(token), math.max(meta.last, now_us + 60000000))", "tonumber(token)"}},
     "a server forgets"},
};

const std::vector<Mutant> kShortWays{
    {"the grant of a single server counts",
     {{"write_memory(token, last_grant, last_exclusive, NOBODY)",
       "write_memory(token, token, token, NOBODY)"}},
     "a cancelled grant does"},
    {"an attempt takes the lock as an acquire at one server does",
     {{"local plain = short and (attempt or '0') == '0'", "local plain = short"}},
     "a run that was never"},
    {"the grant of a single server is a hold",
     {{"'try=granted:'", "'try=held:'"}},
     "a run that was never"},
    {"the run of an unconfirmed grant is listed",
     {{"confirmed = string.match(lone_words, TRY) ~= 'granted'", "confirmed = true"}},
     "a run that was never"},
    {"a grant that is unfolded is a hold",
     {{"string.match(lone_words, TRY) or 'held'", "'held'"}},
     "a run that was never"},
    {"the number of the attempt is not kept",
     {{"'try=granted:' .. 2 * attempt", "'try=granted:0'"}},
     "the bytes of an older attempt"},
    {"the number of the attempt is not read",
     {{"owner == lone_owner and tonumber(select(2", "false and tonumber(select(2"}},
     "the bytes of an older attempt"},
    {"a hold that is unfolded loses the number of the attempt",
     {{"  note_stamp(lone_owner, stamp)\n", ""}},
     "the bytes of an older attempt"},
    {"an older write-back is accepted",
     {{"tried and stamp >= tonumber(tried)", "tried and stamp > 0"}},
     "the bytes of an older attempt"},
    {"who is late is not shown a folded hold",
     {{"if folded then return tonumber(lone_end) > now and describe(lone_owner) or false end", ""}},
     "the bytes of an older attempt"},
    {"the token is not written back",
     {{"{'1', owner, 1, token, lone_since", "{'1', owner, 1, lone_token, lone_since"}},
     "the token of the majority"},
    {"the next token does not count from the majority's",
     {{"last, last_grant, last_exclusive = later(last),",
       "last, last_grant, last_exclusive = last,"}},
     "the token of the majority"},
    {"a confirmed grant does not count",
     {{"later(last_grant), later(last_exclusive)", "last_grant, later(last_exclusive)"}},
     "a confirmed grant counts"},
    {"a confirmed grant does not exclude",
     {{"later(last_grant), later(last_exclusive)", "later(last_grant), last_exclusive"}},
     "a confirmed grant counts"},
    {"a missed write-back is never repeated",
     {{"if stamp == 0 and state ~= 'granted' then", "if stamp == 0 then"}},
     "a renewal brings"},
    {"the first write of a write-back needs memory",
     {{"    call('PEXPIREAT', HOLDERS, ends + GRACE)\n", ""}},
     "a grant is confirmed and"},
    {"words of a grant that are not known are dropped",
     {{"string.gsub(lone_words, TRY, 'try=held:' .. stamp .. ' ')", "'try=held:' .. stamp .. ' '"}},
     "a grant that is confirmed keeps"},
    {"the word of an attempt is kept when the hold is unfolded",
     {{"string.gsub(lone_words, TRY, ''), ' $', '')", "lone_words, ' $', '')"}},
     "a grant that is confirmed keeps"},
};

}  // namespace

const std::vector<Mutant>& quorum_mutants(Way way) {
  return way == Way::usual ? kUsualWay : kShortWays;
}

}  // namespace rlock::contract
