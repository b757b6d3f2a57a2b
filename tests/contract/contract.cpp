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
          &once_end_cases(), &key_cases(), &slot_cases(), &supersede_cases(), &closure_cases()}) {
      list.insert(list.end(), part->begin(), part->end());
    }
    return list;
  }();
  return all;
}

namespace {

// What went wrong; empty when the case holds.
std::string run_case(const NamedCase& named, const std::vector<Mutation>& mutations = {}) {
  Lab lab(mutations);
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
     {{"call('PEXPIREAT', ALIVE, ends)",
       "call('PEXPIREAT', ALIVE, math.ceil(s.latest_beat) + 15000)"}},
     "the queue lives"},
    {"put back although taken since",
     {{"if since > token then return 'taken' end", ""}},
     "an ended lease comes back"},
    {"no tombstones",
     {{"call('ZADD', RELEASED, kept_until * 16 + (before and math.max(kind, s.kind_of(before) or "
       "kind) or "
       "kind), owner)",
       ""}},
     "a late acquire after"},
    {"the limit of the first holder applies",
     {{"math.min(limit, least)", "limit"}},
     "the least limit rules"},
    {"wake before state",
     {{"function s.wake(owner, event)\n",
       "function s.wake(owner, event) call('LPUSH', string.sub(HOLDERS, 1, -8) .. 'wake:' .. "
       "owner, "
       "event)\n"}},
     "a wake of a wrong type"},
    {"a sweep does not ask for another",
     {{"s.must_retry = s.must_retry or #gone == 256", ""}, {"  s.must_retry = true\nend", "end"}},
     "the one alive behind"},
    {"put back without a token",
     {{"if token == 0 then return end_kind and 'expired' or 'deleted' end", ""}},
     "without a token"},
    {"put back what was deleted by hand",
     {{"if not end_kind and tonumber(meta.grant) >= token and tonumber(meta.created) <= token then "
       "return 'deleted' "
       "end",
       ""}},
     "a lock deleted by hand"},
    {"any token is put back",
     {{"if token > greatest then return 'unissued' end", ""}},
     "a token that was never issued"},
    {"deleted before taken",
     {{"local since = tonumber(limit == 1 and",
       "if not end_kind and tonumber(meta.grant) >= token and tonumber(meta.created) <= token then "
       "return 'deleted' end\n  local since = tonumber(limit == 1 and"}},
     "a lock deleted and then taken"},
    {"a live run is released by its id",
     {{"if line and by_id and line.responsive == RUN then return {'runs', s.describe(owner, held)} "
       "end",
       ""}},
     "a live run is not released"},
    {"a later end does not prolong an earlier one",
     {{"  local kept_until = math.max(now + 60000",
       "  if before and (s.kind_of(before) or -1) > kind then return end\n"
       "  local kept_until = math.max(now + 60000"}},
     "of two ends"},
    {"a run that never started leaves a cool-down",
     {{"if line.min_hold > 0 and not unused then", "if line.min_hold > 0 then"}},
     "a command that never started"},
    {"a heartbeat in its last millisecond is swept",
     {{"if ticket then beat() end\nif s.unswept then", "if s.unswept then"}},
     "a waiter that asks"},
    {"a clock ahead delays the completion of a grant",
     {{"now_us + 1000 * (ahead or 0)", "now_us"}},
     "a server that was away"},
    {"a ticket in the future is accepted",
     {{"at = math.min(at, now_us)", "at = at + 0"}},
     "a ticket in the future"},
    {"a ticket in the future is accepted with a cancel",
     {{"s.int(math.min(ticket, now_us))", "ticket"}},
     "a ticket in the future"},
    {"a changed record is not stored",
     {{"if record_changed == '1' then\n        line.record", "if false then\n        line.record"}},
     "a holder changes"},
    {"a revoked holder is freed after a grace",
     {{"if line.responsive ~= '0' and when ~= 'now' then", "if false then"}},
     "a revoked holder"},
    {"the first write of a renewal needs memory",
     {{"  s.touch()\nend\n\n-- Renews", "end\n\n-- Renews"}},
     "with memory full"},
    {"the new head is not woken", {{"s.wake(head, 'look')", ""}}, "the receiver"},
    {"the new head is not remembered",
     {{"memory and (head ~= meta.head or moves)", "memory and moves"}},
     "a new head"},
    {"a missed claim always keeps the place",
     {{"at == 0 or end_kind == 1", "at == 0"}},
     "one missed claim"},
    {"a missed claim never keeps the place",
     {{"local at = tonumber(given_ticket)", "local at = 0"}},
     "one missed claim"},
    {"limits are not rebuilt", {{"  rebuild_limits()\n", ""}}, "with the limits"},
    {"a head without a heartbeat is served",
     {{"if beat <= now then", "if false then"},
      {"math.floor(beat) - now <= 15000 * (beat % 1 * 4)", "false"}},
     "a head"},
    {"keys expire with the lease that ends first",
     {{"call('ZRANGE', HOLDERS, -1, -1, 'WITHSCORES')[2]",
       "call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')[2]"}},
     "a short lease does not"},
    {"the token counts from the counter alone",
     {{"math.max(meta.last + 1, now_us)", "meta.last + 1"}},
     "a flushed lock"},
    {"min-hold for an unclaimed grant",
     {{"line.state ~= 'held' or ends <= now", "ends <= now"}},
     "a grant nobody claimed"},
    {"a forced owner comes back with the lease that lapsed",
     {{"ends = call('ZMSCORE', RELEASED, owner, owner .. ':0')\n  reply = s.ended_reply(ends)",
       ""}},
     "a revoked grant"},
    {"an inner run's end is the outer one's too",
     {{"s.add_tombstone(entry == '0' and owner or owner .. ':' .. entry, kind)",
       "s.add_tombstone(owner, kind)"}},
     "an inner run ends its own entry"},
    {"a released entry may come back",
     {{"s.add_tombstone(owner .. ':' .. entry, 2)", ""}},
     "released outside, crashed inside"},
    {"a restored inner run does not restore its outer one",
     {{"{['0'] = lease_of(entry), [entry]", "{[entry]"}},
     "a nested run puts"},
    {"an exclusive run enters a shared lock",
     {{"elseif line.limit > limit then", "elseif false then"}},
     "exclusive inside shared"},
    {"the first of those who run under a revoked lock frees it",
     {{"return next(entries) and entries or nil",
       "return line.state ~= 'revoked' and next(entries) and entries or nil"}},
     "a revoked lock is held"},
    {"the others who run under a revoked lock are not notified",
     {{"s.wake(owner, 'revoked')\n  return", "return"}},
     "a revoked lock is held"},
    {"a revoked holder renews",
     {{"if line.state == 'revoked' then\n    reply = s.lost", "if false then\n    reply = s.lost"}},
     "a holder that was forced out"},
    {"a revoked holder that lapsed is recorded as expired",
     {{"if line and line.state == 'revoked' then return 'forced' end", ""}},
     "a holder that was forced out"},
    {"the operator's note is ignored",
     {{"if call('HEXISTS', WHO, '!' .. owner) == 1 then return 'forced' end", ""}},
     "a broken lock stays"},
    {"a revoked grant is claimed",
     {{"if line.state == 'revoked' then\n    reply = {'gone'",
       "if false then\n    reply = {'gone'"}},
     "a grant revoked"},
    {"a second force-unlock frees the revoked holder",
     {{"if line.responsive ~= '0' and when",
       "if line.responsive ~= '0' and line.state ~= 'revoked' and when"}},
     "a revoked holder"},
    {"the token of a holder that is to be broken is not checked",
     {{"(token == '0' or s.read_line(holder).token == token)", "true"}},
     "force-unlock breaks only"},
    {"no min-hold after a release",
     {{"if line.min_hold > 0 and not unused then s.start_cooldown(owner, line) end", ""}},
     "min-hold keeps"},
    {"no min-hold after a crash",
     {{"if line then s.start_cooldown(owner, line) end", ""}},
     "min-hold survives"},
    {"an inner run's min-hold is ignored",
     {{"if min_hold ~= '0' and tonumber(min_hold) > line.min_hold then", "if false then"}},
     "an inner run's min-hold"},
    {"the keys end before the min-hold",
     {{"math.max(ends + 2592000000, meta.hold)", "ends + 2592000000"}},
     "the keys"},
    {"min-hold counts from a future start",
     {{"math.min(line.since, now) + line.min_hold", "line.since + line.min_hold"}},
     "min-hold is no longer"},
    {"entries without a lease of their own",
     {{"math.min(ttl, INNER_LEASE)", "ttl"}},
     "an inner run's lease"},
    {"an older attempt is accepted",
     {{"return stamp > 0 and stamp < s.stamp_of(owner)", "return false"},
      {"if stamp <= s.stamp_of(owner) then", "if false then"}},
     "the bytes of an older attempt"},
    {"the cancel of an unknown owner is forgotten",
     {{"queued)\n  s.note_stamp(owner, stamp)", "queued)"}},
     "an acquire that arrives after"},
    {"a write-back without the owner check",
     {{"if not s.fits(limit, true) then return 'full' end", ""}},
     "a late write-back"},
    {"the token is not written back",
     {{"meta.last = string.format('%.0f', math.max(meta.last, token))", ""}},
     "the token of the majority"},
    {"the run of an unconfirmed grant is listed",
     {{"stamp == 0 and 'held' or 'granted'", "'held'"}},
     "a run that was never"},
    {"a missed write-back is never repeated",
     {{"if stamp > 0 or missed then", "if stamp > 0 then"}},
     "a renewal brings"},
    {"the grant of a single server counts",
     {{"if stamp == 0 then s.note_grant(line.token, line) end", "s.note_grant(line.token, line)"}},
     "a cancelled grant does"},
    {"after a cancel the waiter is granted the lock at once",
     {{"head == excluded or ", ""}},
     "after a cancel the waiter"},
    {"words of a hold that are not known are dropped",
     {{"l.responsive .. l.words", "l.responsive"}},
     "words that"},
    {"words of the memory that are not known are dropped",
     {{"head .. s.words .. s.last_success", "head"}},
     "words that"},
    {"a waiter is not woken by its own request",
     {{"if ticket then caller = nil end", ""}},
     "a waiter that a late copy"},
    {"nobody holds the lock without a line",
     {{"local ends = not state and call('ZSCORE', HOLDERS, owner)", "local ends = nil"}},
     "a holder whose line"},
    {"a renewal does not bring the line back",
     {{"line, record_changed = s.line_again(), '1'", ""}},
     "a holder whose line"},
    {"the run of a deleted line is freed at once",
     {{"responsive = cools and '0' or '2'", "responsive = '0'"}},
     "a holder whose line"},
    {"a waiter without a line is passed by",
     {{"return s.wake(head, 'look')", "s.remove_waiter(head)"}},
     "waiters whose lines"},
    {"the line of a waiter does not come back",
     {{"write_waiter()  -- it was deleted", ""}},
     "waiters whose lines"},
    {"a claim does not prolong the life of the lines",
     {{"call('PEXPIREAT', WHO, ends)", ""}},
     "after a claim"},
    {"use does not prolong the life of the memory",
     {{"local moves = now - meta.kept >= 3600000", "local moves = meta.kept == -3600000"}},
     "the memory lives"},
    {"the memory ends before the lease",
     {{"if lease > now + 2592000000 - 3600000 then", "if false then"},
      {"longest = math.max(longest, call(", "longest = math.max(longest, 0 and call("}},
     "the memory lives"},
    {"one that is put back stays in the queue",
     {{"    call('ZREM', QUEUE, owner)\n    call('ZREM', ALIVE, owner)\n  end\n  local ends",
       "  end\n  local ends"}},
     "a lease is put back"},
    {"one that is put back stays expired",
     {{"  call('ZREM', RELEASED, owner)\n", ""}},
     "a lease that was put back"},
    {"the end of a long lease that was broken is remembered for a minute",
     {{"s.add_tombstone(owner, 7, ends)", "s.add_tombstone(owner, 7)"}},
     "a holder with a long"},
    {"the lease of the outer run outlives it",
     {{"s.store_hold(owner, line, latest, 0)",
       "s.store_hold(owner, line, math.max(latest, s.held_until(owner)), 0)"}},
     "when the outer run ends"},
    {"a sweep forgets the attempts of live owners",
     {{"if not (s.held_until(owner) or s.queue_ticket(owner)) then fields", "if true then fields"}},
     "a late cancel"},
    {"the version word of the memory is not read",
     {{"'^1 (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ([^%s|]+)",
       "'^%d (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ([^%s|]+)"}},
     "the memory or the hold of a newer"},
    {"the server's own ticket",
     {{"elseif stamp > 0 then\n        at", "elseif false then\n        at"}},
     "the client's ticket"},
    {"a folded hold has no end", {{", 'PXAT', ends + 2592000000", ""}}, "every key"},
    {"the memory has no end", {{", 'PXAT', longest", ""}}, "every key"},
    {"the history has no end",
     {{"if rows == 1 then call('PEXPIREAT', HISTORY, now + 2592000000) end", ""}},
     "history: capped"},
    {"the history has no bound",
     {{"if rows > s.keep then call('LTRIM', HISTORY, 0, s.keep - 1) end", ""}},
     "history: capped"},
    {"an ended owner acquires a lock",
     {{"reply = (ends[1] or ends[2] or stamp < newest) and s.ended_reply(ends)", "reply = nil"}},
     "a late acquire after"},
    {"a hold with min-hold is folded",
     {{"s.present == 0 and line.min_hold == 0", "s.present == 0"}},
     "min-hold keeps"},
    {"another's renewal extends",
     {{"first_holder == owner and first_end or", "first_end or"}},
     "an ended lease comes"},
    {"an ended lease is extended",
     {{"if held > now then\n  local line = lone", "if held > 0 then\n  local line = lone"}},
     "an ended lease comes"},
    {"an entry is taken for the hold",
     {{"if entry == '0' and line.entries == '0=' .. held then",
       "if line.entries == '0=' .. held then"}},
     "released outside, crashed inside"},
    {"the first write of a lone renewal needs memory",
     {{"    call('PEXPIREAT', HOLDERS, ends + 2592000000)\n", ""}},
     "with memory full"},
    {"the first write of a claim needs memory",
     {{"    s.live_until(ends)\n    if", "    if"}},
     "with memory full"},
    {"the first write of a heartbeat needs memory",
     {{"  s.touch()\n  call('ZADD', ALIVE", "  call('ZADD', ALIVE"}},
     "with memory full"},
    {"the first write of a release needs memory",
     {{"call('DEL', HOLDERS)\n    s.lone, s.n",
       "call('HSET', WHO, 'x', 1) call('DEL', HOLDERS)\n    s.lone, s.n"}},
     "with memory full"},
    {"a heartbeat shortens the life of the queue",
     {{"math.max(ends, before, math.ceil", "math.max(ends, math.ceil"}},
     "the queue lives"},
    {"the queue does not live as long as a claimed lease",
     {{"        call('PEXPIREAT', ALIVE, ends)\n", ""}},
     "the queue lives"},
    {"a revoked holder is released like any other",
     {{"local forced = line.state == 'revoked'", "local forced = false"}},
     "a holder that was forced out"},
    {"a release ends the entries of others",
     {{"and not sole and s.other_entries(line)", "and false"}},
     "released outside, crashed inside"},
    {"a release frees the other holders",
     {{"if s.n_holders == 1 and owner == s.first_holder then", "if owner == s.first_holder then"}},
     "a shared waiter behind"},
    {"last come, first served",
     {{"local head = call('ZRANGE', QUEUE, 0, 0)[1]\n    if not",
       "local head = call('ZRANGE', QUEUE, -1, -1)[1]\n    if not"}},
     "first come, first served"},
    {"an ended lease is not swept",
     {{"local unswept = n_holders > 0 and first_end <= now or", "local unswept ="}},
     "the receiver of"},
    {"a dead head is served",
     {{"or dead > 0 or not", "or not"},
      {"if beat <= now then", "if false then"},
      {"math.floor(beat) - now <= 15000 * (beat % 1 * 4)", "false"}},
     "dead waiters"},
    {"words of a folded hold that are not known are dropped",
     {{"lone.words = string.gsub(' ' .. words, ' $', '')", "lone.words = ''"}},
     "words that"},
    {"words of the next holder that are not known are dropped",
     {{"words = line_words,", "words = '',"}},
     "words that"},
    {"the ACL is asked each time",
     {{"return now < tonumber(until_ms)", "return now >= tonumber(until_ms)"}},
     "what the ACL"},
    {"the ACL is asked once",
     {{"return now < tonumber(until_ms)", "return 0 < tonumber(until_ms)"}},
     "what the ACL"},
    {"what the ACL allowed by a clock that was ahead is believed",
     {{" and tonumber(until_ms) <= now + 3600000", ""}},
     "what the ACL"},
    {"the end of the memory is not moved after a clock that was ahead",
     {{"if meta.kept == '0' or tonumber(meta.kept) > now then", "if meta.kept == '0' then"}},
     "tokens grow"},
    {"the notes of waiters outlive their tombstones",
     {{"      call('PEXPIREAT', RELEASED, ends)\n", ""},
      {"is_left and WHO or RELEASED", "is_left and WHO or NEVER"}},
     "those who came and went"},
    {"overdue tombstones stay",
     {{"then s.sweep_tombstones() end", "then end"}},
     "overdue tombstones"},
    {"the run is not listed",
     {{"local row = 'run ' .. line.token", "local row = '- ' .. line.token"}},
     "history: runs"},
    {"a heartbeat is not renewed",
     {{"if type(redis.pcall('ZADD', ALIVE, s.latest_beat, owner)) == 'number' then",
       "if ticket then"}},
     "waiters' deadlines"},
    {"a shared holder excludes others",
     {{"s.n_holders == 1 and holder and holder[3] == 1", "s.n_holders == 1"}},
     "slots fill up"},
    {"a refused wait joins the queue", {{"queueing == 'never' or full", "full"}}, "a refused wait"},
    {"a full queue is joined",
     {{"local full = max_queue ~= '' and", "local full = false and"}},
     "a full queue"},
    {"the other keys are not read before the first write",
     {{"if newcomer or what then call('LLEN', HISTORY) end", ""}},
     "a key of a wrong type"},
};

// A hold by one, with nobody waiting, is stored in another form than others.
const std::vector<Mutation> kNeverFolded{{"local sole = is_new and", "local sole = false and"}};

void check_cases(const std::vector<Mutation>& form) {
  REQUIRE(MutatedScripts(form).all_applied());
  for (const NamedCase& named : cases()) {
    const std::string broken = run_case(named, form);
    CHECK_MESSAGE(broken.empty(), std::string(named.name), ": ", broken);
  }
}

void check_caught(const Mutant& mutant) {
  auto caught_by = [&](const NamedCase& n) {
    return std::string(n.name).starts_with(mutant.caught_by);
  };
  REQUIRE_MESSAGE(std::count_if(cases().begin(), cases().end(), caught_by) == 1,
                  std::string(mutant.caught_by), ": not the name of one case");
  auto named = std::find_if(cases().begin(), cases().end(), caught_by);
  const bool applied = MutatedScripts(mutant.change).all_applied();
  CHECK_MESSAGE(applied, std::string(mutant.rule), ": no place to change");
  if (!applied) return;
  const std::string broken = run_case(*named, mutant.change);
  CHECK_MESSAGE(!broken.empty(), std::string(mutant.rule), " is not caught by ",
                std::string(named->name));
}

}  // namespace

TEST_CASE("the scripts keep every rule of the native protocol") {
  check_cases({});
}

TEST_CASE("the scripts keep every rule where no hold is folded") {
  check_cases(kNeverFolded);
}

// Else they take twice the time.
TEST_CASE("usual requests need no rare functions") {
  Lab lab({Mutation{"  rare()\n", "  rare() redis.call('INCR', 'rare')\n"}});
  REQUIRE(lab.mutations_applied());
  lab.granted('Z');  // the ACL is asked
  lab.release('Z');
  lab.cli({"DEL", "rare"});

  lock::Token token = lab.granted('A');
  lab.renew('A', token);
  lab.release('A', lock::Entry::outer(), "exit:0");
  token = lab.granted('B');
  CHECK(lab.cli({"GET", "rare"}) == "");
  lab.queued('C');  // unfolds
  lab.cli({"DEL", "rare"});
  lab.queued('D');
  lab.queued('C');
  lab.renew('B', token);
  lab.release('B', lock::Entry::outer(), "exit:0");
  token = lab.granted('C');
  lab.renew('C', token);
  lab.release('C');
  lab.granted('D');
  lab.release('D');
  Ask slots;
  slots.limit = lock::Limit::slots(2);
  token = lab.granted('E', slots);
  lab.renew('E', token, slots);
  lab.release('E');
  Ask attempt;
  attempt.attempt = 1;
  attempt.ticket = {1000};
  token = lab.granted('F', attempt);
  lab.renew('F', token, attempt);
  attempt.attempt = 0;
  lab.renew('F', token, attempt);
  lab.release('F');
  CHECK(lab.cli({"GET", "rare"}) == "");
}

TEST_CASE("each rule that is left out fails its case") {
  for (auto* mutants :
       {&kMutants, &rest_mutants(), &count_mutants(), &once_mutants(), &once_end_mutants(),
        &slot_mutants(), &quorum_mutants(), &closure_mutants()}) {
    for (const Mutant& mutant : *mutants) check_caught(mutant);
  }
}

}  // namespace rlock::contract
