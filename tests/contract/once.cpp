// What is done once: when a run is done for another, what is remembered, and what is forgotten.
#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::AlreadyDone;
using lock::FailedTooOften;
using lock::Token;

constexpr Millis kDay = 24h;
constexpr Millis kMonth = 30 * kDay;

Ask asks(const std::string& key) {
  Ask ask;
  ask.once = lock::Once{lock::OnceKind::key, key, {}, {}};
  return ask;
}

CASE("once: a success counts as done for the next run with the same key or period") {
  lab.play("A granted day=2026-11-22; 20s pass; A marked day=2026-11-22; 3s pass");
  const auto already = as<AlreadyDone>(lab.acquire('B', asking("day=2026-11-22")), "it is to run");
  need(already.took == 20s && already.record == "record of A" && already.token == lab.token('A'),
       "not who did it, and how long it took");
  lab.play(
      "nobody holds; nobody waits; C granted day=2026-11-23; D done day=2026-11-22; "
      "C released");
  lab.play("E runs; F done: E", asks("one two|three=4%"));
  lab.play("G granted; G released", asks("one two"));
  lab.play("H granted within=12h; H released; I granted");
}
MUTANT("a success leaves no mark",
       {"if args.outcome == 'succeeded' then\n    local mark", "if false then\n    local mark"});

// Before room, the cool-down, busy, -n and --max-queue.
CASE("once: done is decided before anything else") {
  lab.play(
      "A runs once=k; B granted min-hold=60s; C done once=k at-once; "
      "D done once=k max-queue=0; B renewed; B released; E done once=k");
}
MUTANT("acquire decides whether the work is done after all else",
       {"local reply = ended or settle_if_done()", "local reply = ended"});

// A distance: what was granted after one asked, or had asked less than that before.
CASE("once: a distance counts from the time when each run asked") {
  lab.play(
      "A granted within=12h asked=1h; B queued within=12h; 20s pass; "
      "A marked within=12h asked=1h; B done within=12h asked=20s; 10h59m pass; "
      "C done within=12h; D granted within=11h; D released; 1m pass; E granted within=12h; "
      "E released; F done within=12h asked=13h; 1d pass; G granted; "
      "H queued within=12h asked=13h; I queued within=12h; 1s pass; G released; "
      "H runs within=12h asked=13h; I done within=12h asked=1s");
}
MUTANT("a run repeats work that was granted after it asked",
       {"return mark.granted > work.asked or", "return"});
MUTANT("the distance counts from the grant of the last run",
       {"mark.asked > work.asked - work.span", "mark.granted > work.asked - work.span"});

// Its own words say when it asked, and requests that are slow do not make that later.
CASE("once: the time of the first request counts") {
  lab.play(
      "A granted within=1h ttl=10h; 59m55s pass; XY queued; B queued within=1h; 10s pass; "
      "B queued within=1h asked=0s; A marked within=1h asked=1h5s; "
      "B done: A within=1h asked=0s");
}
MUTANT("the distance counts from a resent request",
       {"if known then work.asked = math.min(work.asked, known.asked) end", ""});

CASE("once: waiters whose work is done leave, and learn of it") {
  lab.play(
      "A granted once=k; BCD queued once=k; E queued; F queued once=k; 1s pass; "
      "A marked once=k; E holds; BCD woken; BCD done: A once=k; F done once=k; E granted; "
      "E released; nobody holds");
  const auto history = lab.history();
  const auto skips = as<lock::Skips>(history.at(1), "no skips");
  need(skips.count == 4 && skips.done == 4 && skips.record == "record of F", "not counted");
  as<lock::Run>(history.at(0), "no run");
}
MUTANT("admit grants the lock to a waiter whose work is done",
       {"elseif verdict then", "elseif false then"});
MUTANT("the script does not wake waiters whose work is done",
       {"M.wakes.add(owner, M.tombstones.word(kind))", ""});
MUTANT("a waiter whose work is done learns only that it is gone",
       {"if kind == 4 and work then", "if false then"});
MUTANT("the memory counts no skip as done",
       {"M.history.count_skip(record, not (kind == 4 and note) and M.tombstones.word(kind))",
        "M.history.count_skip(record)"});

// At most 64 a script; the next one is woken for the rest.
CASE("once: at most 64 waiters whose work is done leave in one script") {
  lab.play("A granted once=k; B queued once=k");
  constexpr const char* kScript = R"(
    local clock = redis.call('LRANGE', 'clock', 0, 1)
    local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
    for i = 1, 199 do
      local owner = string.format('%032x', 4096 + i)
      redis.call('ZADD', KEYS[1], string.format('%.0f', now * 1000 + i), owner)
      redis.call('ZADD', KEYS[2], now + 15000, owner)
      redis.call('HSET', KEYS[3], owner,
                 'state=waiting limit=1 token=0 since=0 ttl=30000 min_hold=0 responsive=1' ..
                 ' once=key:k span=0 asked=' .. now .. ' | x')
    end)";
  lab.pass(1s);
  lab.cli({"EVAL", kScript, "3", lab.key("queue"), lab.key("alive"), lab.key("who")});
  lab.play("1s pass; Y queued; A marked once=k");
  need(lab.inspect().live_waiters == 200 + 1 - 64, "another number leaves at once");
  lab.granted('Y');
  need(lab.inspect().live_waiters == 0, "some still wait");
}
MUTANT("any number of waiters leaves in one script", {"for _ = 1, ADMIT do", "for _ = 1, 1000 do"});

void marked_by_another(Lab& lab, const std::string& key) {
  const std::string now = std::to_string(lab.inspect().holders.at(0).since.ms);
  lab.cli({"HSET", lab.key("once"), "key:" + key,
           "kept=9000000000000 token=" + now + "000 asked=" + now + " granted=" + now +
               " ended=" + now + " failures=0 failed=0 | record"});
}

// A mark that came between the grant and the claim, such as from the other servers of a quorum.
CASE("once: a grant is not claimed if the work is done by then") {
  lab.play("A granted once=k; B queued once=k; C queued; A released; B holds");
  marked_by_another(lab, "k");
  lab.play("B done once=k; C holds; C released");
  const Token token = lab.granted('D', asking("once=other"));
  marked_by_another(lab, "other");
  need(lab.granted('D', asking("once=other")) == token, "what runs is called off");
}
MUTANT("an owner claims a grant although its work is done",
       {"not (line and line.state ~= 'granted')", "not line"});
MUTANT("acquire admits no waiter in place of an owner whose work is done",
       {"end\n  return verdict\n", "end\n  M.admit.exclude(M.queue.head())\n  return verdict\n"});
MUTANT("a run learns that its work is done while it runs",
       {"not (line and line.state ~= 'granted')", "true"});

CASE("once: the lock is not handed over to a waiter whose work is done") {
  lab.play("A granted; B queued once=k; C queued");
  marked_by_another(lab, "k");
  lab.play("A released; C holds; B done once=k");
}
MUTANT("a release hands the lock to a waiter whose work is done",
       {"local verdict = work and", "local verdict = false and"});

CASE("once: repeated requests record one success") {
  const Token token = lab.granted('A', asking("once=k"));
  need(lab.granted('A', asking("once=k")) == token, "a resent acquire is another");
  lab.play(
      "A marked once=k; A marked once=k; all forgotten 1 0 0; A unmarked once=k; "
      "B granted once=k; B released");
}
MUTANT("a resent release writes a second mark",
       {"if end_kind == 2 then return mark_before() end",
        "if end_kind == 2 then return note(nil) end"},
       {"if token <= memory.forgotten then return '' end", ""});

// Runs nested in it go on: it has ended, though the lock is not free yet.
CASE("once: a run has ended although nested runs continue") {
  lab.play(
      "A granted once=k tries=9; A inner renewed; A marked once=k tries=9; "
      "A marked once=k tries=9; B done once=k tries=9; A holds");
}
MUTANT("an outer run that ends before its nested runs leaves no mark",
       {"mark_before() or M.outcome.note(line)}", "mark_before() or ''}"});

CASE("once: a run that failed, died or was broken leaves no mark") {
  lab.play(
      "A granted once=k; A fails once=k; B granted once=k; all forced; B unmarked once=k; "
      "C granted once=k; all forced now; C unmarked once=k; D granted once=k; D released; "
      "D unmarked once=k; E granted once=k; 31s pass; F granted once=k");
  lab.release('F', lock::Entry::outer(), "-", lock::ReleaseHow::unused);
  lab.play("G granted once=k");
}
MUTANT("a failed run leaves a mark",
       {"if args.outcome == 'succeeded' then\n    local mark", "if true then\n    local mark"});
MUTANT("a broken run leaves a mark",
       {"if forced then return {'absent',",
        "if forced then return {'absent', mark = M.outcome.note(line),"});
MUTANT("an owner that ended in another way leaves a mark",
       {"if end_kind == 2 then return mark_before() end", ""},
       {"if end_kind and end_kind > 1 then return M.tombstones.word(end_kind) end", ""});

// A lease that was lost counts only where nobody can have had the lock since.
CASE(
    "once: the success of a lost lease is recorded only if no other run was granted the lock "
    "since") {
  lab.play(
      "A granted once=k; 31s pass; A marked once=k; B done: A once=k; all forgotten; "
      "C granted once=k; 31s pass; D granted once=k; C unmarked once=k; D released; "
      "C unmarked once=k; E granted once=k; data lost; 1s pass; E marked once=k; "
      "F done once=k");
}
MUTANT(
    "a lost lease leaves a mark although another owner was granted the lock",
    {"if why and not (why == 'full' and (not other or other.token <= number)) then return '' end",
     ""});
MUTANT("a late success leaves no mark", {"return note(nil)", "return ''"});

// By a client whose clock is older than the server's.
CASE("once: a success of a run that asked before 1970 is read") {
  Ask ask = asking("once=k");
  ask.asked = 24h * 36'500;
  lab.play("A runs", ask);
  lab.play("B done once=k");
}
CASE("once: forgotten work stays forgotten") {
  lab.play(
      "A runs once=one; B runs once=two; one forgotten 1 0 0; one forgotten 0 0 0; "
      "three forgotten 0 0 0; C granted once=one");
  need(lab.queued('D', asking("once=one")).forgotten > Token{}, "no reply says so");
  lab.play(
      "E done once=two; all forgotten 1 0 0; D cancelled; C marked once=one; "
      "all forgotten 1 0 0");
  const Token token = lab.token('C');
  const auto again = as<lock::Granted>(lab.acquire('F', asking("once=one")), "not granted");
  need(again.forgotten >= token && again.forgotten < again.token, "not up to which token");
}
MUTANT("acquire does not tell other servers what was forgotten",
       {"math.max(memory.forgotten, mark.ended == 0 and mark.token or 0)", "0"});
MUTANT("forget forgets work that runs now",
       {"then return line.token - 1 end", "then return math.max(memory.last, now_us) end"});

CASE("once: forget considers only current holders, even before an expired lease is swept") {
  lab.play(
      "A granted slots=2 ttl=1s; B granted slots=2 once=k; 2s pass; all forgotten; B marked "
      "once=k");
}
MUTANT("forget counts an expired lease as a run",
       {"call('ZCOUNT', HOLDERS, '(' .. now, '+inf')", "M.holders.count()"});

// No client sends the field of a period, but all marks have one form.
CASE("once: forgotten work of a period stays forgotten") {
  lab.play("A granted day=2026-11-22; 31s pass");
  lab.raw(&redis::Scripts::forget, {"field", "per:day:2026-11-22"});
  lab.play("A unmarked day=2026-11-22");
}
MUTANT("forget keeps nothing of the work that it forgets",
       {"write_mark(field, mark, before, 2592000000)\nend\n\n-- Counts",
        "write_mark(field, mark, before, 0)\nend\n\n-- Counts"});

// Adds `count` expired marks; at each multiple of 64 fields, a success looks for them.
void add_expired(Lab& lab, int count) {
  lab.cli(
      {"EVAL",
       "for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], 'per:' .. i, 'kept=1 ended=1 | x') end",
       "1", lab.key("once"), std::to_string(count)});
}

CASE("once: the next success removes many that have expired") {
  lab.play("A granted once=k");
  add_expired(lab, 9024);
  lab.play("A marked once=k");
  need(lab.cli({"HLEN", lab.key("once")}) == "1", "they stay");
}
MUTANT("a success does not remove expired marks",
       {"call('HDEL', ONCE, all[i])\n    elseif", "local _ = 0\n    elseif"});

CASE("once: a server forgets the failures that others have forgotten, and no later ones") {
  lab.play("A granted once=k tries=1; A fails once=k tries=1; B refused once=k tries=1");
  Ask ask = asking("once=k tries=1");
  ask.forgotten = {lab.token('A').value - 1'000'000};
  need(as<lock::FailedTooOften>(lab.acquire('C', ask), "granted").times == 1, "how often");
  ask.forgotten = lab.token('A');
  (void)as<lock::Granted>(lab.acquire('D', ask), "not granted");
}
MUTANT("acquire does not forget failures that other servers have forgotten",
       {"or mark.failures > 0 and mark.failed * 1000", ""});

CASE("once: after so many failures no run tries again") {
  lab.play(
      "A granted day=2026-11-22 tries=2; A fails day=2026-11-22 tries=2; "
      "B granted day=2026-11-22 tries=2; C queued day=2026-11-22 tries=2; "
      "D queued day=2026-11-22; 10s pass; C queued day=2026-11-22 tries=2; "
      "D queued day=2026-11-22; 14s pass; C queued day=2026-11-22 tries=2; "
      "D queued day=2026-11-22; 7s pass");
  need(
      as<FailedTooOften>(lab.acquire('C', asking("day=2026-11-22 tries=2")), "C is to run").times ==
          2,
      "one that died did not fail");
  lab.play(
      "D holds; D granted day=2026-11-22; E refused day=2026-11-22 tries=2; "
      "D fails day=2026-11-22; F granted day=2026-11-23 tries=2; all forgotten; "
      "C refused day=2026-11-22 tries=2");
}
MUTANT("the mark counts no failure",
       {"mark.failures, mark.failed = failures_of(work, mark) + 1, work.asked", ""});
MUTANT("a run that died does not count as a failed attempt",
       {"if work then M.once.note_failure(work) end\n", "\n"});

// Else a server of a quorum whose clock is ahead does not learn that it was forgotten.
CASE("once: a waiter learns of a failure no later than it was") {
  lab.play("A granted once=k tries=1; B queued once=k tries=1; 5s pass; A fails once=k tries=1");
  for (const char* forgotten : {"", "k forgotten"}) {
    lab.play(std::string("5s pass; ") + (*forgotten == 0 ? "0s pass" : forgotten));
    const auto failed =
        as<FailedTooOften>(lab.acquire('B', asking("once=k tries=1")), "B is to run");
    need(failed.times == 1 && failed.last.value > 0, "not how often");
    need(failed.last.value <= static_cast<uint64_t>(lab.now() - 10'000) * 1000, "a later failure");
  }
}
MUTANT("a dismissed waiter learns of a failure of this moment",
       {"token = tonumber(token)}", "token = now_us}"});

CASE("once: failures count until a success, or for the distance") {
  lab.play(
      "A granted within=1h tries=1; A fails within=1h tries=1; B refused within=1h tries=1; "
      "1h pass; C granted within=1h tries=1; C marked within=1h tries=1; 10m pass; "
      "D granted within=1m; D fails within=1h tries=1; E granted within=1m asked=5m; "
      "E marked within=1h tries=1 asked=5m; 55m pass; F granted within=1h tries=1");
}
MUTANT("a success does not end the failures of a mark",
       {"failures = 0, failed = 0,\n", "failures = before.failures, failed = before.failed,\n"});
MUTANT("failures of a distance count forever",
       {"if work.field == 'within' and mark.failed <= work.asked - work.span then return 0 end",
        ""});

CASE("once: marks are kept for a while after they were last asked for") {
  lab.play("A runs once=k");
  lab.pass(kMonth - 1s);
  lab.play("B done once=k");
  lab.pass(kMonth - 1s);
  lab.play("C done once=k");
  lab.pass(kMonth + 1s);
  lab.play(
      "D granted once=k; D released; E runs within=366d; 365d pass; F done within=366d; "
      "G runs day=2026-11-22");
  need(lab.end_of("once") > 0, "the marks have no end");
  lab.play("49h pass; H done day=2026-11-22; 2h pass; I granted day=2026-11-22");
}
MUTANT("acquire does not prolong the mark that it asks for", {"  M.once.keep(work)\n", ""});
MUTANT("the marks never expire",
       {"if left < mark.kept - now then call('PEXPIREAT', ONCE, int(mark.kept)) end", ""});

CASE("once: of a thousand keys the least recently used ones are dropped") {
  lab.play("A runs once=first; 1s pass; B runs once=second; C runs day=2026-11-22");
  constexpr const char* kScript = R"(
    local old = redis.call('HGET', KEYS[1], 'key:second')
    local later = string.gsub(old, 'kept=(%d+)', function(kept)
      return 'kept=' .. string.format('%.0f', kept + 1)
    end)
    for i = 1, 1020 do redis.call('HSET', KEYS[1], 'key:' .. i, i <= 64 and old or later) end)";
  lab.pass(1s);
  lab.cli({"EVAL", kScript, "1", lab.key("once")});
  lab.play(
      "D done once=first; E done once=1; K granted once=last; K marked once=last; "
      "F granted once=new; F marked: no_room once=new; "
      "F marked: no_room once=new");
  need(lab.cli({"HLEN", lab.key("once")}) == "961", "not 64 fewer");
  lab.play(
      "G done once=first; G done once=1; G done once=65; G done once=1020; G done once=new; "
      "G done day=2026-11-22; "
      "H runs within=366d; 26h pass");
  lab.pass(kMonth);
  add_expired(lab, 62);
  lab.play("I runs once=later");
  need(lab.cli({"HLEN", lab.key("once")}) == "2", "what is over is kept");
}
MUTANT("a resent release does not say that another mark was removed",
       {"M.tombstones.kind(request.owner .. ':no_room') and 'no_room' or 'marked'", "'marked'"});
MUTANT("the script removes the mark that was used last", {"a.kept < b.kept", "a.kept > b.kept"});
MUTANT("the number of keys has no bound",
       {"for i = 1, BATCH do call('HDEL', ONCE, found[i].name) end", ""});
MUTANT("each release reads all marks", {"n % BATCH > 0", "n < MARKS and n % BATCH > 0"});
MUTANT("the script does not remove expired marks to make room",
       {"(mark.kept or 0) <= now then\n      call('HDEL', ONCE, all[i])",
        "(mark.kept or 0) <= now then"});

// Neither a failure nor what is forgotten pushes out what was done.
CASE("once: failures and forgotten work displace no success") {
  lab.play("A runs once=first");
  constexpr const char* kFill = R"(
    local mark = redis.call('HGET', KEYS[1], 'key:first')
    for i = 1, 1023 do redis.call('HSET', KEYS[1], 'key:' .. i, mark) end)";
  lab.cli({"EVAL", kFill, "1", lab.key("once")});
  lab.play(
      "B granted once=failing tries=1; B fails once=failing tries=1; "
      "C refused once=failing tries=1; unknown forgotten");
  need(lab.cli({"HLEN", lab.key("once")}) == "1026", "one was pushed out");
  lab.play("D granted once=also tries=2; D fails once=also tries=2; E granted once=also tries=2");
  // Copies of the failure: to a multiple of 64, at which marks are counted.
  const auto fail = [&](const std::string& from, const std::string& to) {
    constexpr const char* kFail = R"(
      local mark = redis.call('HGET', KEYS[1], 'key:failing')
      for i = ARGV[1], ARGV[2] do redis.call('HSET', KEYS[1], 'key:failed' .. i, mark) end)";
    lab.cli({"EVAL", kFail, "1", lab.key("once"), from, to});
  };
  fail("1", "61");
  for (int copy = 0; copy < 2; ++copy) {
    lab.play("E marked: no_room once=also tries=2");
    need(lab.cli({"HLEN", lab.key("once")}) == "1024", "not a thousand successes");
  }
  lab.pass(1s);
  fail("62", "1021");
  lab.play("another forgotten");
  need(lab.cli({"HLEN", lab.key("once")}) == "1921", "no bound");
  lab.play("F done once=also tries=2");
}
MUTANT("a failure displaces a success", {"and (mark.ended > 0) == done then", "then"});
MUTANT("the number of successes after failures has no bound",
       {"not same_sort and", "before.kept == 0 and"});

CASE("once: forget says what it removed") {
  lab.play(
      "A granted once=failing tries=9; A fails once=failing tries=9; B runs once=one; "
      "C granted; C fails once=one tries=9; one forgotten 1 1 0; all forgotten 0 1 0; "
      "all forgotten 0 0 0");
}

// The memory lives as long as the longest lease.
CASE("once: forget does not shorten the life of the records") {
  lab.play("A granted once=k ttl=60d; B queued");
  for (bool one : {true, false}) {
    lab.pass(2h);
    lab.forget(one ? std::optional<std::string>("k") : std::nullopt);
    const auto ends = lab.end_of("meta");
    need(ends - lab.inspect().now.ms > (59 * kDay).count(), "the memory ends before the lease");
  }
}
MUTANT("forget shortens the life of the memory",
       {"math.max(now, last_lease, memory.lasts)", "math.max(now, memory.lasts)"});

// A clock that was set back must not have everything done for months.
CASE("once: a success in the future is ignored") {
  lab.play("A runs within=1h; -2h pass; B granted within=1h; B released");
}
MUTANT("a mark of the future counts",
       {"if mark.granted > now + work.span then return false end", ""});

CASE("once: with memory full a success is recorded and found") {
  lab.play(
      "A runs once=k; B granted once=other; memory full; C done once=k; "
      "B marked once=other; memory free");
}
MUTANT("acquire needs memory to learn that work is done",
       {" or done_reply() then M.keys.touch() end", " then M.keys.touch() end"});

// A run without these options leaves nothing of the kind, and neither does one of another kind.
CASE("once: runs without these options leave no record") {
  lab.play("A granted; A exit:0; B granted once=k; B fails once=k");
  need(lab.cli({"EXISTS", lab.key("once")}) == "0", "something is remembered");
}
MUTANT("a run without these options stores its failure", {"if not work.max then return end", ""},
       {"if args.outcome == 'failed' and", "if args.outcome ~= 'succeeded' and"});

}  // namespace
}  // namespace rlock::contract
