#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "contract/mutants.hpp"

namespace rlock::contract {

const std::vector<NamedCase>& cases() {
  static const std::vector<NamedCase> all = [] {
    std::vector<NamedCase> list;
    for (auto* part :
         {&end_cases(), &mode_cases(), &crowd_cases(), &rest_cases(), &server_cases(),
          &history_cases(), &count_cases(), &quorum_cases(), &once_cases(), &once_memory_cases(),
          &once_end_cases(), &version_cases(), &slot_cases(), &supersede_cases()}) {
      list.insert(list.end(), part->begin(), part->end());
    }
    return list;
  }();
  return all;
}

namespace {

// What went wrong; empty when the case holds.
std::string run_case(const NamedCase& named, Way way, const std::vector<Mutation>& mutations = {}) {
  Lab lab(way, mutations);
  if (!lab.mutations_applied()) return "";
  try {
    named.run(lab);
  } catch (const std::exception& broken) {
    return broken.what();
  }
  return "";
}

const std::vector<Mutant> kMutants{
    {"the queue lives as long as its heartbeats alone",
     {{"call('PEXPIREAT', ALIVE, who)", "call('PEXPIREAT', ALIVE, int(alive))"}},
     "the queue lives"},
    {"put back although taken since",
     {{"if since > token then return 'taken' end", ""}},
     "an ended lease comes back"},
    {"no tombstones",
     {{"call('ZADD', RELEASED, int(keep * 16 + kind), owner)", ""}},
     "a late acquire after"},
    {"the limit of the first holder applies",
     {{"math.min(limit, least)", "limit"}},
     "the least limit rules"},
    {"wake before state",
     {{"local function wake(owner, event) wakes[#wakes + 1] = {owner, event} end",
       "local function wake(owner, event) call('LPUSH', BASE .. 'wake:' .. owner, event) end"}},
     "a wake of a wrong type"},
    {"a sweep does not ask for another",
     {{"must_retry = must_retry or #dead == SWEEP", ""}, {"    must_retry = true\n  end", "  end"}},
     "the one alive behind"},
    {"put back without a token",
     {{"if token == 0 then return end_kind and 'expired' or 'deleted' end", ""}},
     "without a token"},
    {"put back what was deleted by hand",
     {{"if not end_kind and meta.grant >= token and meta.created <= token then return 'deleted' "
       "end",
       ""}},
     "a lock deleted by hand"},
    {"any token is put back",
     {{"if token > greatest then return 'unissued' end", ""}},
     "a token that was never issued"},
    {"deleted before taken",
     {{"local since = limit == 1 and",
       "if not end_kind and meta.grant >= token and meta.created <= token then return 'deleted' "
       "end\n  local since = limit == 1 and"}},
     "a lock deleted and then taken"},
    {"a live run is released by its id",
     {{"if line and line.responsive == RUN then return {'runs', describe(owner)} end", ""}},
     "a live run is not released"},
    {"a later end does not prolong an earlier one",
     {{"kind = math.max(kind, kind_of(before) or kind)",
       "if (kind_of(before) or -1) > kind then return end"}},
     "of two ends"},
    {"a run that never started leaves a cool-down",
     {{"and line and not unused then", "and line then"}},
     "a command that never started"},
    {"a heartbeat in its last millisecond is swept",
     {{"if n_alive > 0 and tonumber(call('ZSCORE', ALIVE, owner) or 0) == now then "
       "refresh_heartbeat() end",
       ""}},
     "a waiter that asks"},
    {"a clock ahead delays the completion of a grant",
     {{"now_us + 1000 * tonumber(ahead or 0)", "now_us"}},
     "a server that was away"},
    {"a ticket in the future is accepted",
     {{"ticket = math.min(ticket, now_us)", "ticket = ticket + 0"}},
     "a ticket in the future"},
    {"a ticket in the future is accepted with a cancel",
     {{"int(math.min(tonumber(ticket), now_us))", "ticket"}},
     "a ticket in the future"},
    {"a changed record is not stored",
     {{"if changed == '1' then call('HSET', WHO, owner, record) end", ""}},
     "a holder changes"},
    {"a revoked holder is freed after a grace",
     {{"if line and line.responsive ~= '0' and when ~= 'now' then", "if false then"}},
     "a revoked holder"},
    {"the first write of a renewal needs memory",
     {{"touch()\nunfold()\nlocal reply", "unfold()\nlocal reply"}},
     "with memory full"},
    {"the new head is not woken", {{"wake(head, 'look')", ""}}, "the receiver"},
    {"the new head is not remembered",
     {{"local changed = migrates or head ~= meta.head", "local changed = false"}},
     "a new head"},
    {"a missed claim always keeps the place",
     {{"ticket == 0 or end_kind == REQUEUED", "ticket == 0"}},
     "one missed claim"},
    {"a missed claim never keeps the place",
     {{"local ticket, end_kind = tonumber(given_ticket)", "local ticket, end_kind = 0"}},
     "one missed claim"},
    {"limits are not rebuilt", {{"    rebuild_limits()\n", ""}}, "with the limits"},
    {"a head without a heartbeat is served",
     {{"if not line or beat <= now then", "if not line then"},
      {"return math.floor(beat) - now <= HEARTBEAT * (beat % 1 * 4)", "return false"}},
     "a head"},
    {"keys expire with the lease that ends first",
     {{"call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]",
       "call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]"},
      {"local GRACE = 60000", "local GRACE = 0"}},
     "a short lease does not"},
    {"the token counts from the counter alone",
     {{"math.max(meta.last + 1, now_us)", "meta.last + 1"}},
     "a flushed lock"},
    {"min-hold for an unclaimed grant",
     {{"line.state ~= 'held' or ends <= now", "ends <= now"}},
     "a grant nobody claimed"},
    {"a forced owner comes back with the lease that lapsed",
     {{"if could_end then reply = ended_reply() end", ""}},
     "a revoked grant"},
    {"an inner run's end is the outer one's too",
     {{"add_tombstone(entry == '0' and owner or owner .. ':' .. entry, kind)",
       "add_tombstone(owner, kind)"}},
     "an inner run ends its own entry"},
    {"a released entry may come back",
     {{"add_tombstone(owner .. ':' .. entry, WAS_RELEASED, latest)", ""}},
     "released outside, crashed inside"},
    {"a restored inner run does not restore its outer one",
     {{"local entries = {['0'] = now + lease_of(entry, ttl), [entry]", "local entries = {[entry]"}},
     "a nested run puts"},
    {"an exclusive run enters a shared lock",
     {{"if line.limit > limit then return {'upgrade'} end", ""}},
     "exclusive inside shared"},
    {"the first of those who run under a revoked lock frees it",
     {{"if how ~= 'released' or not next(entries)",
       "if read_line(owner).state == 'revoked' or not next(entries)"}},
     "a revoked lock is held"},
    {"the others who run under a revoked lock are not notified",
     {{"wake(owner, 'revoked')\n  return", "return"}},
     "a revoked lock is held"},
    {"a revoked holder renews",
     {{"if line.state == 'revoked' then return lost('forced', false) end", ""}},
     "a holder that was forced out"},
    {"a revoked holder that lapsed is recorded as expired",
     {{"local forced = line and line.state == 'revoked'\n        if",
       "local forced = false\n        if"}},
     "a holder that was forced out"},
    {"the operator's note is ignored",
     {{"if call('HEXISTS', WHO, '!' .. owner) == 1 then return 'forced' end", ""}},
     "a broken lock stays"},
    {"a revoked grant is claimed",
     {{"if line.state == 'revoked' then return {'gone', 'forced', note_of(owner)} end", ""}},
     "a grant revoked"},
    {"a second force-unlock frees the revoked holder",
     {{"if line and line.responsive ~= '0' and when",
       "if line and line.responsive ~= '0' and line.state ~= 'revoked' and when"}},
     "a revoked holder"},
    {"the token of a holder that is to be broken is not checked",
     {{"(token == '0' or (line and int(line.token) == token))", "true"}},
     "force-unlock breaks only"},
    {"no min-hold after a release",
     {{"if how == 'released' and line and not unused then start_cooldown(owner, line) end", ""}},
     "min-hold keeps"},
    {"no min-hold after a crash",
     {{"if line then start_cooldown(owner, line) end", ""}},
     "min-hold survives"},
    {"an inner run's min-hold is ignored",
     {{"if min_hold > line.min_hold then", "if false then"}},
     "an inner run's min-hold"},
    {"the keys end before the min-hold",
     {{"math.max(largest(HOLDERS) + GRACE, meta.hold)", "largest(HOLDERS) + GRACE"}},
     "the keys"},
    {"min-hold counts from a future start",
     {{"math.min(line.since, now) + line.min_hold", "line.since + line.min_hold"}},
     "min-hold is no longer"},
    {"entries without a lease of their own",
     {{"return math.min(ttl, INNER_LEASE)", "return ttl"}},
     "an inner run's lease"},
    {"an older attempt is accepted",
     {{"return stamp > 0 and stamp < stamp_of(owner)", "return false"},
      {"stamp > 0 and stamp <= stamp_of(owner)", "false"}},
     "the bytes of an older attempt"},
    {"the cancel of an unknown owner is forgotten",
     {{"local function cancel_attempt(line)\n  note_stamp(owner, stamp)",
       "local function cancel_attempt(line)"}},
     "an acquire that arrives after"},
    {"a write-back without the owner check",
     {{"if not fits(limit) then return 'full' end", ""}},
     "a late write-back"},
    {"the token is not written back",
     {{"meta.last = math.max(meta.last, token)\n  note_grant(token, line)\nend",
       "note_grant(token, line)\nend"}},
     "the token of the majority"},
    {"the run of an unconfirmed grant is listed",
     {{"stamp == 0 and 'held' or 'granted'", "'held'"}},
     "a run that was never"},
    {"a missed write-back is never repeated",
     {{"if stamp == 0 and not missed then", "if stamp == 0 then"}},
     "a renewal brings"},
    {"the grant of a single server counts",
     {{"if stamp == 0 then note_grant(line.token, line) end", "note_grant(line.token, line)"}},
     "a cancelled grant does"},
    {"after a cancel the waiter is granted the lock at once",
     {{"head == excluded or ", ""}},
     "after a cancel the waiter"},
    {"words of a hold that are not known are dropped",
     {{"l.responsive .. (l.words or '')}", "l.responsive}"}},
     "words that"},
    {"words of the memory that are not known are dropped",
     {{"' ' .. head .. words .. last_success", "' ' .. head"}},
     "words that"},
    {"the lock of an older rlock is taken",
     {{"if older then return older end", ""}},
     "the lock of an older"},
    {"the lock of an older rlock is taken before it is free",
     {{"older = redis.error_reply('WRONGTYPE an older rlock uses this lock')", "older = nil"}},
     "the lock of the older one"},
    {"the tokens of an older rlock are not continued",
     {{"table.concat({'1', fields[1], fields[2] or 0", "table.concat({'1', 0, fields[2] or 0"}},
     "the lock of the older one"},
    {"the server's own ticket",
     {{"if stamp == 0 then\n    if", "if true then\n    if"}},
     "the client's ticket"},
};

// The rules that the short ways state again, and what they must leave to the usual way.
const std::vector<Mutant> kShortMutants{
    {"the token counts from the counter alone",
     {{"math.max(last + 1, now_us)", "last + 1"}},
     "a flushed lock"},
    {"a folded hold has no end", {{", 'PXAT', lease_end + GRACE", ""}}, "every key"},
    {"the memory has no end",
     {{"call('SET', META, text, 'PXAT', now + META_LIFE)", "call('SET', META, text)"}},
     "every key"},
    {"the history has no end",
     {{"if rows == 1 then call('PEXPIREAT', HISTORY, now + META_LIFE) end", ""}},
     "history: capped"},
    {"the history has no bound",
     {{"if rows > keep then call('LTRIM', HISTORY, 0, keep - 1) end", ""}},
     "history: capped"},
    {"an ended owner acquires a free lock",
     {{"if not ends[1] and not ends[2] and old_head", "if old_head"}},
     "a late acquire after"},
    {"an ended owner joins the queue",
     {{"joins = joins and not ends[1] and not ends[2]", ""}},
     "a late acquire after"},
    {"a hold with min-hold is folded",
     {{"local short = min_hold == '0' and ", "local short = "}},
     "min-hold keeps"},
    {"another's renewal extends",
     {{"lone_owner == owner and tonumber(lone_end)", "tonumber(lone_end)"}},
     "an ended lease comes"},
    {"an ended lease is extended",
     {{"lone_owner == owner and tonumber(lone_end) > now", "lone_owner == owner"}},
     "an ended lease comes"},
    {"an entry is taken for the hold",
     {{"> now and entry == '0' and", "> now and"}},
     "released outside, crashed inside"},
    {"a changed record is not stored", {{"changed ~= '1' and", ""}}, "a holder changes"},
    {"the first write of a renewal needs memory",
     {{"call('PEXPIREAT', HOLDERS, ends + GRACE)\n", ""}},
     "with memory full"},
    {"the first write of a claim needs memory",
     {{"    call('PEXPIREAT', HOLDERS, lease_end + GRACE)\n",
       "    call('ZADD', HOLDERS, lease_end, owner)\n"}},
     "with memory full"},
    {"the first write of a heartbeat needs memory",
     {{"call('PEXPIREAT', QUEUE, queue_end)\n", ""}},
     "with memory full"},
    {"a heartbeat shortens the life of the queue",
     {{"math.max(last_end + HEARTBEAT, now + call('PTTL', WHO))", "last_end + HEARTBEAT"}},
     "the queue lives"},
    {"the queue does not live as long as a claimed lease",
     {{"call('PEXPIREAT', ALIVE, who_end)", ""}},
     "the queue lives"},
    {"the first write of a release needs memory",
     {{"call('DEL', HOLDERS, LIMITS)", "call('HSET', WHO, 'x', 1) call('DEL', HOLDERS, LIMITS)"}},
     "with memory full"},
    {"no tombstones", {{"call('ZADD', RELEASED, tombstone, owner)", ""}}, "a late acquire after"},
    {"a revoked grant is claimed",
     {{"if state == 'granted' or state == 'held' then", "if state then"}},
     "a grant revoked"},
    {"a revoked holder is released like any other",
     {{"'^1 held %d+ (%d+)", "'^1 %l+ %d+ (%d+)"}},
     "a holder that was forced out"},
    {"a release ends the entries of others",
     {{"entries == '0=' .. holder[2] and\n", "\n"}},
     "released outside, crashed inside"},
    {"a release frees the other holders",
     {{"and not holder[3] and entries", "and entries"}},
     "a shared waiter behind"},
    {"last come, first served",
     {{"unpack(call('ZRANGE', QUEUE, 0, 1))", "unpack(call('ZRANGE', QUEUE, -1, -1))"}},
     "first come, first served"},
    {"an ended lease is not swept", {{"single_end > now and not", "not"}}, "the receiver of"},
    {"a dead head is served", {{"dead > 0 or", ""}}, "dead waiters"},
    {"a head without a heartbeat is served",
     {{"not beat or tonumber(beat) % 1", "tonumber(beat or 0) % 1"}},
     "a head"},
    {"the new head is not woken", {{"push_wake(second, 'look')", ""}}, "the receiver"},
    {"wake before state",
     {{"call('DEL', HOLDERS, LIMITS)",
       "if head then call('LPUSH', BASE .. 'wake:' .. head, 'x') end call('DEL', HOLDERS, "
       "LIMITS)"}},
     "a wake of a wrong type"},
    {"words of a folded hold that are not known are dropped",
     {{"string.gsub(' ' .. string.gsub(lone_words, TRY, ''), ' $', '')", "''"}},
     "words that"},
    {"words of the next holder that are not known are dropped",
     {{"(%d+) 0 ([012].*)$", "(%d+) 0 ([012])"}},
     "words that"},
    {"the ACL is asked each time",
     {{"(at and user and now <", "(at and user and now >="}},
     "what the ACL"},
    {"the ACL is asked once", {{"(at and user and now <", "(at and user and 0 <"}}, "what the ACL"},
    {"overdue tombstones stay", {{"if overdue > 0 then", "if false then"}}, "overdue tombstones"},
    {"the run is not listed",
     {{"local row = 'run ' .. token", "local row = '- ' .. token"}},
     "history: runs"},
    {"a heartbeat is not renewed",
     {{"call('ZADD', ALIVE, beat_score(slices), owner)\n", ""}},
     "waiters' deadlines"},
    {"a shared holder excludes others",
     {{"and l[2] == '1' and entries", "and l[2] and entries"}},
     "slots fill up"},
    {"a refused wait joins the queue",
     {{"queueing == 'wait' and max_queue", "max_queue"}},
     "a refused wait"},
    {"a full queue is joined", {{" and max_queue == ''", ""}}, "a full queue"},
    {"a missed claim never keeps the place",
     {{"and given_ticket == '0' and queueing", "and queueing"}},
     "one missed claim"},
    {"the other keys are not read before the first write",
     {{"  call('LLEN', HISTORY)\n", ""}},
     "a key of a wrong type"},
};

}  // namespace

TEST_CASE("the scripts keep every rule of the native protocol") {
  for (Way way : kWays) {
    for (const NamedCase& named : cases()) {
      const std::string broken = run_case(named, way);
      CHECK_MESSAGE(broken.empty(), std::string(named.name), ", ", std::string(name_of(way)), ": ",
                    broken);
    }
  }
}

namespace {

void check_caught(const Mutant& mutant, Way way) {
  auto caught_by = [&](const NamedCase& n) {
    return std::string(n.name).starts_with(mutant.caught_by);
  };
  REQUIRE_MESSAGE(std::count_if(cases().begin(), cases().end(), caught_by) == 1,
                  std::string(mutant.caught_by), ": not the name of one case");
  auto named = std::find_if(cases().begin(), cases().end(), caught_by);
  REQUIRE_MESSAGE(MutatedScripts(way, mutant.change).all_applied(), std::string(mutant.rule),
                  ": no place to change");
  const std::string broken = run_case(*named, way, mutant.change);
  CHECK_MESSAGE(!broken.empty(), std::string(mutant.rule), " is not caught by ",
                std::string(named->name));
}

}  // namespace

TEST_CASE("each rule removed from the usual way fails its case") {
  constexpr Way kWay = Way::usual;
  for (auto* mutants : {&kMutants, &rest_mutants(kWay), &count_mutants(kWay), &once_mutants(kWay),
                        &once_end_mutants(kWay), &slot_mutants(kWay), &quorum_mutants(kWay)}) {
    for (const Mutant& mutant : *mutants) check_caught(mutant, kWay);
  }
}

TEST_CASE("each rule removed from the short ways fails its case") {
  constexpr Way kWay = Way::short_ways;
  for (auto* mutants :
       {&kShortMutants, &rest_mutants(kWay), &count_mutants(kWay), &once_mutants(kWay),
        &once_end_mutants(kWay), &slot_mutants(kWay), &quorum_mutants(kWay)}) {
    for (const Mutant& mutant : *mutants) check_caught(mutant, kWay);
  }
}

}  // namespace rlock::contract
