// The history and the counters of the runs, written by the calls that end them, and how runs end.
#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::CancelHow;
using lock::Entry;
using lock::Renewal;
using lock::Run;
using lock::Skips;

const Run& run_at(const std::vector<lock::HistoryRow>& history, size_t i) {
  need(i < history.size(), "a run is missing");
  return as<Run>(history[i], "not a run");
}

CASE("history: runs, the newest first, with how they ended") {
  lock::Token first = lab.granted('A');
  lab.play("5s pass; A exit:7; B granted; B signal:9");
  const auto history = lab.history();
  need(history.size() == 2, "not two runs");
  need(run_at(history, 0).result == "signal:9", "not the newest first");
  const Run& run = run_at(history, 1);
  need(run.token == first && run.result == "exit:7" && run.how == "released", "not as it ended");
  need(run.until.ms - run.since.ms == 5000, "not its length");
  need(run.record == "record of A", "not who");
}
MUTANT("the history lists no run", {"{kind = 'run',", "{kind = '-',"});

CASE("history: a repeated release is one run") {
  lab.play("A granted; A released; A released; rows released -");
}

// Nothing is running for ever, and what was lost is listed as such.
CASE("history: lost and forced runs are listed") {
  lab.play(
      "A granted; 31s pass; B granted; rows expired -; all forced; B signal:15; "
      "rows forced signal:15 by the operator, expired -");
  need(run_at(lab.history(), 0).record == "record of B", "not whom");
  lab.play(
      "C granted; all forced now; "
      "rows forced - by the operator, forced signal:15 by the operator, expired -; "
      "D granted; all forced; 31s pass; E granted");
  need(lab.rows().starts_with("forced - by the operator, "),
       "one that never confirmed is not listed");
}

CASE("history: a run whose lease the server has lost is listed as lost") {
  lab.play("A granted; 5s pass; data lost; 0s pass; B granted");
  lab.ends_run('A');
  const auto row = run_at(lab.history(), 0);
  need(row.result == "lost" && row.record == "record of A" && row.token == lab.token('A'), "not A");
  need(row.until.ms - row.since.ms == 5'000, "another time");
  lab.play("counts 1 1 1 0 1; B exit:0; rows released exit:0, released lost");
  lab.pass(2min);  // its tombstone is gone
  lab.ends_run('A');
  lab.play("counts 2 1 1 0 0; rows released exit:0, released lost");
}
MUTANT("the history does not list a run that the server has lost",
       {"if not before then M.outcome.note_lost_run() end", ""});
MUTANT("the history lists a run twice that the server has lost",
       {" or M.history.row_of(number) then", " then"});

CASE("history: a run whose end is listed is not listed as lost") {
  for (const char* end : {"A released", "31s pass; B granted; B released", "all forced now"}) {
    Ask one_row;
    one_row.history_rows = 1;
    lab.play(std::string("data lost; 0s pass; A granted; ") + end);
    lab.pass(2min);  // its tombstone is gone
    lab.play("C granted", one_row);
    lab.play("C exit:0");
    lab.ends_run('A');
    need(lab.rows() == "released exit:0", std::string("listed again after ") + end);
  }
}
MUTANT("a repeated release lists a run as lost that left the history",
       {"memory.created > 0 and memory.created <= number or", ""});

CASE("history: a forced cool-down is noted with its run") {
  lab.play(
      "A granted min-hold=60s; A exit:0; all forced; B granted min-hold=60s; B exit:1; "
      "rows released exit:1, released exit:0 by the operator");
  need(run_at(lab.history(), 1).record == "record of A", "another one");
}

CASE("history: skipped runs between two runs share a row") {
  lab.play("A granted; B busy; 3s pass; C busy; D queued; D times out; E queued; E cancelled");
  const auto history = lab.history();
  need(history.size() == 1, "skips do not share a row");
  const auto skips = as<Skips>(history[0], "no skips");
  need(skips.count == 3 && skips.record == "record of D", "not counted");
  need(skips.last.ms - skips.first.ms == 3000, "not when");
  lab.release('A');
  need(lab.history().size() == 2, "the run is not written before the skips");
}

CASE("history: an unclaimed grant is not listed as a run") {
  lab.play("A granted; B queued; A released; 3s pass; C granted; rows released -");
}

CASE("history: the list is capped and expires") {
  for (int i = 0; i < 120; ++i) {
    char owner = static_cast<char>('A' + i % 26);
    lab.play("released deleted");
    lab.granted(owner);
    lab.release(owner);
  }
  need(lab.cli({"LLEN", lab.key("history")}) == "100", "not capped");
  need(lab.end_of("history") > 0, "lives for ever");
}
MUTANT("the history never expires", {"RELEASED, HISTORY}", "RELEASED}"},
       {"call('PEXPIREAT', HISTORY, now + 2592000000)", ""});
MUTANT("the history grows without a bound", {"call('LTRIM', HISTORY, 0, memory.keep - 1)", ""});

CASE("counts: successes and failures, and the last of each") {
  lab.play(
      "counts 0 0 0 0 0; A granted; 5s pass; A exit:0; counts 1 0 0 0 0; B granted; "
      "B exit:7; C granted; 1s pass; C signal:9; counts 3 2 0 0 2");
  lock::Snapshot seen = lab.inspect();
  need(seen.last_success && seen.last_failure, "the last ends are missing");
  need(seen.last_success->took == 5s && seen.last_success->record == "record of A", "not A's");
  need(seen.last_failure->result == "signal:9" && seen.last_failure->took == 1s, "not C's");
  need(seen.last_failure->at == seen.now && seen.now.ms - seen.last_success->at.ms == 1000, "when");
  lab.play(
      "1s pass; D granted; E queued; D exit:0; counts 4 2 0 0 0; E granted; E ends: -; "
      "counts 5 2 0 0 0; F granted; F ends: stopped; counts 6 2 0 0 0");
  need(lab.inspect().last_success->record == "record of D", "either is a success");
  need(lab.inspect().last_failure->record == "record of C", "who failed is forgotten");
}
MUTANT("the memory counts no run", {"  memory.runs = memory.runs + 1\n", ""});
MUTANT("the memory counts no failure", {"  memory.failures = memory.failures + 1\n", ""});
MUTANT("a success does not end the streak of failures",
       {"memory.success, memory.streak = text, 0", "memory.success = text"});
MUTANT("a release without a result counts as a failure", {"result ~= '-' and ", ""});
MUTANT("a run that was asked to stop counts as a failure",
       {" and result ~= 'stopped' then", " then"});

CASE("counts: a repeated release counts once") {
  lab.play("A granted; A exit:7; A exit:7; A exit:0; counts 1 1 0 0 1");
  need(!lab.inspect().last_success, "a repeated release is a success");
}

CASE("counts: runs that died, lost the lease or were broken are counted") {
  lab.play("A granted; 31s pass; B granted; counts 1 1 1 0 1");
  need(lab.inspect().last_failure->result == "expired", "not how it was lost");
  lab.play("all forced; B exit:0; counts 2 2 2 0 2");
  need(lab.inspect().last_failure->result == "forced" && !lab.inspect().last_success, "a success");
  lab.play(
      "C granted; C ends: lost; counts 3 3 3 0 3; D granted; E queued; D exit:0; 3s pass; "
      "F granted; counts 4 3 3 0 0");
}
MUTANT("an expired lease does not count as a loss",
       {"if not released or result == 'lost' then", "if result == 'lost' then"});
MUTANT("a run that lost its lease does not count as a loss",
       {"if not released or result == 'lost' then", "if not released then"});
MUTANT("a broken run that exits with 0 counts as a success",
       {"if released and result == 'exit:0' then", "if result == 'exit:0' then"});

// What runs have held and waited so far, in seconds: `12 3`.
std::string sums(Lab& lab) {
  const lock::Counters counters = lab.inspect().counters;
  return std::to_string(counters.held_ms / 1000) + " " + std::to_string(counters.waited_ms / 1000);
}

CASE("sums: runs add what they held, and what they waited") {
  const auto need_sums = [&lab](const std::string& steps, const std::string& expected) {
    lab.play(steps);
    need(sums(lab) == expected, "after " + steps + ": " + sums(lab));
  };
  need_sums("A granted; 5s pass", "5 0");
  need_sums("B queued; 3s pass; A exit:0", "8 0");
  need_sums("B granted; 2s pass", "10 0");
  need_sums("B exit:1", "10 3");
  need_sums("C granted; D queued; C exit:0; 1s pass", "10 3");  // a grant that D does not claim
  need_sums("3s pass; E granted; 20s pass", "30 3");
  need_sums("20s pass", "40 3");  // E died
  need_sums("E restored; 5s pass", "45 3");
  need_sums("E exit:0", "45 3");
  need_sums("F granted min-hold=60s; 5s pass; F exit:0; 10s pass", "50 3");
  need_sums("60s pass; G granted; G inner renewed; 5s pass; G exit:0; 5s pass", "60 3");
  need_sums("G inner released", "60 3");
  need_sums("c closed 10s; 10s pass", "60 3");
  need_sums("HI granted slots=2; 5s pass", "70 3");
  const std::string page = lab.raw(&redis::Scripts::inspect, {"holders", "1"});
  need(page.find("held\n70000") != page.npos, "only the page is counted: " + page);
  need_sums("HI exit:0", "70 3");
  lab.granted('J');
  lab.pass(-5s);
  need_sums("J exit:0", "70 3");
}
MUTANT("inspect leaves out the present holders", {" + held_so_far(page)", ""});
MUTANT("inspect counts the holders of a page only",
       {"if holders_from == 0 and live > holders_page then", "if false then"});
MUTANT("inspect counts a cool-down", {"(line.state == 'held' or line.state == 'revoked')", "true"});
MUTANT("a run adds nothing at its end",
       {"  memory.held = memory.held + held_for(line, row.ended)\n", ""});
MUTANT("a restored run adds its first lease twice",
       {"math.max(line.since, line.counted or 0)", "line.since"});
MUTANT("a clock that was set back makes the sum fall",
       {"return math.max(0, at - math.max(line.since, line.counted or 0))",
        "return at - math.max(line.since, line.counted or 0)"});
MUTANT("a run does not add its wait",
       {"  if line.waited then memory.waited = memory.waited + line.waited end\n", ""});

CASE("sums: an attempt over a quorum that was cancelled does not end the wait") {
  Ask ask;
  ask.attempt = 1;
  lab.granted('A');
  lab.queued('B', ask);
  lab.play("5s pass; A exit:0");
  lab.cancel_attempt('B', 1, {1});
  lab.play("5s pass");
  need(lab.inspect().waiters.front().waiting == 10s, "the wait has begun again");
}
MUTANT("a cancelled attempt begins the wait again",
       {"    line.since, line.waited = line.since - (line.waited or 0), nil\n", ""});

CASE("counts: skipped runs are counted") {
  lab.play(
      "A granted; B busy; C queued; C times out; D queued; D cancelled; counts 0 0 0 2 0; "
      "E busy; E busy; counts 0 0 0 3 0; B busy; counts 0 0 0 4 0");
}
MUTANT("a repeated refusal counts twice", {"if memory.skipped == counted then return end", ""});
MUTANT("the memory counts no skip", {"  memory[counter] = memory[counter] + 1\n", ""});
MUTANT("the script does not store a counter that it changed",
       {"if value ~= stored[name] then", "if value ~= stored[name] and name ~= 'skips' then"});

// What is known of the last success does not depend on the history.
CASE("counts: the last run says how many rows the history keeps") {
  auto rows = [&] { return lab.history().size(); };
  for (char owner = 'A'; owner < 'F'; ++owner) {
    lab.granted(owner, asking("rows=3"));
    lab.release(owner, Entry::outer(), owner == 'A' ? "exit:0" : "exit:1");
  }
  need(rows() == 3, "not three rows");
  lab.play("counts 5 4 0 0 4");
  need(lab.inspect().last_success->record == "record of A", "the success went with its row");
  lab.play("F granted rows=3; G queued rows=0; F exit:1");
  need(rows() == 3, "a waiter's number counts before its run");
  lab.play("G granted rows=0; 31s pass; H granted");
  need(rows() == 0, "a sweep writes a row that the run does not want");
  lab.play("counts 7 6 1 0 6; H exit:0");
  need(rows() == 1 && lab.inspect().last_success->record == "record of H", "the last run's number");
}
MUTANT("a claim does not store the number of rows",
       {"memory.keep = request.rows  -- a sweep", "-- a sweep"});
MUTANT("a grant does not store the number of rows",
       {"  memory.keep = request.rows\n  -- Over", "  -- Over"});
MUTANT("the history keeps all rows if none is wanted",
       {"if memory.keep == 0 then return call('DEL', HISTORY) end", ""});

// A hostile or long record breaks nothing, and a lock that is only read is not changed.
CASE("counts: records of any form and length") {
  Ask ask;
  const std::string hostile =
      "a|b runs=99 keep=1 failed=1,2,3 streak=7 state=revoked result=exit:3\n|x";
  ask.record = hostile;
  lab.play("A granted; A exit:0", ask);
  lab.granted('B');
  lab.release('B', Entry::outer(), "exit:1 runs=5");
  lab.play("counts 2 1 0 0 1");
  need(lab.inspect().last_success->record == hostile, "not the record");
  ask.record = std::string(10'000, 'x');
  lab.play("C granted; C exit:0", ask);
  need(lab.inspect().last_success && lab.inspect().last_success->record.empty(), "not cut");
  need(std::stoul(lab.cli({"HSTRLEN", lab.key("meta"), "success"})) < 1000,
       "the memory has no bound");
  const std::string before = lab.fingerprint();
  lab.inspect();
  need(lab.fingerprint() == before, "a look writes");
}
MUTANT("the memory stores a success of any length",
       {"if #text > 4096 then text = string.match(text, '^.-| ') end", ""});
MUTANT("the scripts read words in a record",
       {"string.gmatch(string.sub(text, 1, bar - 1),", "string.gmatch(text,"});

// Its lease has ended, and is put back: that is one run, which is counted once.
CASE("ends: a lease that is restored leaves one run") {
  lab.play("A granted once=k tries=2");
  for (int i = 0; i < 3; ++i) {
    lab.play("31s pass; A restored once=k tries=2; rows expired -; counts 1 1 1 0 1");
  }
  lab.play("A fails once=k tries=2; rows released exit:1; counts 1 1 1 0 1");
  need(lab.inspect().last_failure->result == "exit:1", "not how it ended");
  lab.play(
      "B granted once=k tries=2; 31s pass; B renewed; B exit:0; "
      "rows released exit:0, released exit:1; counts 2 2 2 0 0");
  need(lab.inspect().last_success->record == "record of B", "no success");
  // Without a row only a tombstone shows that it was counted.
  lab.play("data lost; 0s pass; A granted once=k tries=2 rows=0");
  for (int i = 0; i < 4; ++i) {
    lab.play("31s pass; A restored once=k tries=2 rows=0; counts 1 1 1 0 1");
  }
}
MUTANT("the memory counts a restored run twice", {"line.counted = now", ""});
MUTANT("the history lists a restored run twice", {"line.counted and row_of(line.token)", "nil"});
MUTANT("a restored run that fails counts as two failed attempts",
       {"note ~= 'stopped' and not (line and line.counted) then", "note ~= 'stopped' then"});
MUTANT("a restored lease that expires counts as a second failed attempt",
       {"local work = not line.counted and M.tasks.of(line)", "local work = M.tasks.of(line)"});
MUTANT("the sweep does not note that a restored lease expired",
       {"  M.tombstones.add(owner .. ':counted', 0)",
        "  if not line.counted then M.tombstones.add(owner .. ':counted', 0) end"});
MUTANT("the memory counts the second end of a lease", {"  if line.counted then return end\n", ""});

// A success that comes after the lease's end, and counts, is the last one everywhere.
CASE("ends: a late success that counts is the last one") {
  lab.play("A granted once=k tries=1; 31s pass");
  for (int copy = 0; copy < 2; ++copy) {
    lab.play("A marked once=k tries=1; rows released exit:0; counts 1 1 1 0 0");
  }
  need(lab.inspect().last_success->record == "record of A", "no success");
  lab.play(
      "B done once=k tries=1; data lost; 1s pass; C granted once=k tries=1; data lost; "
      "1s pass; C marked once=k tries=1; rows released exit:0; counts 1 0 0 0 0; "
      "D granted once=other tries=1; 31s pass; E granted; D unmarked once=other tries=1; "
      "rows expired -, released exit:0; counts 2 1 1 0 1");
}
MUTANT("the history does not list a late success",
       {"<= number)) then return '' end",
        "<= number)) then return '' end if true then return note(nil) end"});

// The end of the outer run is that of the run, however those that are nested in it end.
CASE("ends: the end of the outer run is the end of the run") {
  lab.play(
      "A granted once=k tries=2; A inner renewed; A fails once=k tries=2; "
      "A fails once=k tries=2; 31s pass; B granted once=k tries=2; B inner renewed; "
      "rows released exit:1; counts 1 1 0 0 1; B marked once=k tries=2; B inner exit:3; "
      "rows released exit:0, released exit:1; counts 2 1 0 0 0; C granted once=j; "
      "C inner renewed; C fails once=j; C inner exit:0; "
      "rows released exit:1, released exit:0, released exit:1; counts 3 2 0 0 1");
}
MUTANT("the history has the result of a nested run",
       {"result = line.result or result", "result = result"});
MUTANT("a repeated release of the outer run counts again",
       {"repeated and M.outcome.mark_before() or M.outcome.note(line)", "M.outcome.note(line)"});
MUTANT("a nested run that died counts as a failed attempt",
       {"line.state ~= 'held' or how ~= 'expired' then", "line.state ~= 'held' then"});

// The outer run has died, and those that are nested in it go on.
CASE("ends: an outer run that died has failed, whatever nested ones do") {
  lab.play(
      "A granted once=k tries=1; A inner renewed; 20s pass; A inner renewed; 20s pass; "
      "A inner exit:0; rows expired -; counts 1 1 1 0 1; B refused once=k tries=1; "
      "all forgotten; C granted once=k tries=1; C inner renewed; 20s pass; C inner renewed; "
      "20s pass; C marked once=k tries=1; C inner exit:0; rows released exit:0, expired -; "
      "counts 2 1 1 1 0");
}
MUTANT("the end of a nested run replaces that of an outer run that died",
       {"if entry ~= '0' and not forced then", "if false then"});
MUTANT("a success after the entry's lease leaves no mark",
       {"repeated and M.outcome.mark_before() or",
        "(repeated or not M.entry_list.live(line)['0']) and M.outcome.mark_before() or"});

// It returned 0, maybe half-way: neither a success nor a failure.
CASE("ends: a run that was asked to stop has neither succeeded nor failed") {
  const lock::Token token = lab.granted('A', asking("once=k tries=1"));
  lab.ends('A', {{lock::OnceKind::key, "k", 0ms, 1}, 0ms, token, false, {}}, "stopped");
  lab.play("rows released stopped; counts 1 0 0 0 0");
  need(!lab.inspect().last_success, "a success");
  lab.play("B granted once=k tries=1");
}
MUTANT("a run that was asked to stop counts as a failed attempt",
       {"and request.note ~= 'stopped' and", "and"});

// The words of a line that the server has lost.
CASE("ends: a restored lease has all that the run asked for") {
  lab.play(
      "A granted once=k tries=1 rows=0; data lost; 1s pass; "
      "A renewed once=k tries=1 rows=0; 31s pass; B refused once=k tries=1");
  need(lab.history().empty(), "a row that the run does not want");
  lab.play(
      "all forgotten; C granted once=k tries=1 rows=0; data lost; 1s pass; C inner renewed; "
      "C renewed once=k tries=1 rows=0; 31s pass; D refused once=k tries=1");
}
MUTANT("a restored lease forgets what is done once",
       {"if not args.once then return line end", "if true then return line end"});
MUTANT("a restored lease forgets how many rows the history keeps",
       {"if args.rows then memory.keep = tonumber(args.rows) end", ""});
MUTANT("a lease that a nested run restored forgets what is done once",
       {"add_again(line, line.since)", ""});

// ---- a run that died, and that no script has swept yet ----

std::string last_ends(Lab& lab) {
  const lock::Snapshot seen = lab.inspect();
  std::string text = lab.counts();
  if (const auto& last = seen.last_failure) {
    text += ", failed at " + std::to_string(last->at.ms) + " after " +
            std::to_string(last->took.count()) + " " + last->result + " " + last->record;
  }
  if (const auto& last = seen.last_success) text += ", succeeded at " + std::to_string(last->at.ms);
  for (const lock::HistoryRow& row : lab.history()) {
    const auto* run = std::get_if<lock::Run>(&row);
    if (run == nullptr) continue;
    text += "; " + run->how + " " + run->result + " " + std::to_string(run->until.ms) + " " +
            std::to_string(run->renewed.ms) + " " + run->note + " " + run->record;
  }
  return text;
}

// Those who look see, at any time, what the next script that writes counts and lists.
void need_unseen(Lab& lab, const std::string& rows_and_counts) {
  const std::string before = lab.fingerprint();
  lab.play(rows_and_counts);
  const std::string seen = last_ends(lab);
  need(lab.fingerprint() == before, "a look writes");
  for (Millis later : {Millis(0), Millis(5s), Millis(62s), Millis(24h)}) {
    lab.pass(later);
    need(last_ends(lab) == seen, "later it is " + last_ends(lab) + " instead of " + seen);
  }
  lab.cancel('Z');
  need(last_ends(lab) == seen, "swept it is " + last_ends(lab) + " instead of " + seen);
}

void need_kept(Lab& lab) {
  for (const char* suffix : {"holders", "limits", "who", "meta"}) {
    const long long left = std::stoll(lab.cli({"PTTL", lab.key(suffix)}));
    need(left == -2 || left > Millis(29 * 24h).count(), std::string(suffix) + " is not kept");
  }
}

CASE("ends: a run that died is seen from the end of its lease on") {
  lab.granted('A');
  need_kept(lab);
  lab.play("20s pass; A renewed");
  need_kept(lab);
  lab.pass(29'999ms);
  need(lab.history().empty() && lab.counts() == "0 0 0 0 0", "listed before its lease has ended");
  lab.pass(1ms);
  const auto row = as<lock::Run>(lab.history().at(0), "no run");
  need(row.until.ms - row.since.ms == 50'000, "its end is not that of its lease");
  need(row.renewed.ms - row.since.ms == 20'000, "it did not run until its last renewal");
  const auto last = lab.inspect().last_failure;
  need(last && last->at == row.until && last->took == 20s && last->result == "expired" &&
           last->record == "record of A",
       "the last failure is another one");
  need_unseen(lab, "rows expired -; counts 1 1 1 0 1");
  lab.play("B granted; rows expired -; counts 1 1 1 0 1");

  lab.play("CD queued; B exit:0; C granted");
  need_kept(lab);
  lab.play("C exit:0; D granted; 31s pass");
  need_unseen(lab, "rows expired -, released exit:0, released exit:0, expired -; counts 4 2 2 0 1");
}
MUTANT("the keys expire a minute after the last lease",
       {"memory.expires = needed + 3600000", "memory.expires = last_lease + 60000"});
MUTANT("the keys expire a minute after the last use",
       {"math.max(now, last_lease, memory.lasts) + 2592000000",
        "math.max(now, last_lease, memory.lasts) + 60000"});
MUTANT("inspect does not list a run that died",
       {"local line = string.sub(owner, 1, 1) ~= '~' and M.lines.read(owner)", "local line = nil"});
MUTANT("a run that died ends when the sweep finds it",
       {"    note_lapse(owner, line, ends)\n", "    note_lapse(owner, line, now)\n"});
MUTANT("a run that died was renewed until its lease expired",
       {"math.max(line.since, ended - line.ttl)", "ended"});
MUTANT("inspect does not show the record of the last failure",
       {"failed_record = failed_record(rows),", ""});

// Whatever became of its hold meanwhile.
CASE("ends: an expired lease is shown as ended before a script sweeps it") {
  lab.play("A granted; B queued; A exit:0; 3s pass");
  need_unseen(lab, "rows released exit:0; counts 1 0 0 0 0");  // nobody claimed the grant

  lab.play("C granted; all forced; 31s pass");
  need_unseen(lab, "rows forced - by the operator, released exit:0; counts 2 1 1 0 1");

  lab.play("D granted; D inner renewed; 20s pass; D inner renewed; D exit:0; 31s pass");
  need_unseen(lab,
              "rows released exit:0, forced - by the operator, released exit:0; counts 3 1 1 0 0");

  lab.play("E granted rows=0; 31s pass");
  need(lab.history().empty() && lab.counts() == "4 2 2 0 1", "a row that the run does not want");
}
MUTANT("inspect lists a grant as a run",
       {"if not line or line.state == 'granted' or line.unclaimed or line.token == 0 then return "
        "nil end",
        "if not line then return nil end"});
MUTANT("inspect lists more rows than the run wants", {"4 or 0), memory.keep)", "4 or 0), 100)"});

// Those who look also find the row that a second end replaces.
CASE("ends: a run whose lease was restored after days has one end") {
  lab.granted('A');
  for (int i = 0; i < 2; ++i) lab.play("24h pass; A restored");
  lab.pass(31s);
  need_unseen(lab, "rows expired -; counts 1 1 1 0 1");
}
MUTANT("inspect lists both ends of a restored lease",
       {"if place then rows[place] =", "if false then rows[place] ="});

CASE("ends: a release that comes after days changes nothing") {
  lab.play("A granted; 24h pass");
  const std::string before = last_ends(lab);
  need(lab.release('A', Entry::outer(), "exit:0").ending == lock::OwnerEnd::expired, "released");
  need(last_ends(lab) == before, "a late release changes how it ended");
}

// Of those that share a lock one has died before another ends.
CASE("ends: runs are listed in the order of their ends") {
  lab.play(
      "AB granted shared; C granted shared ttl=10m; 31s pass; rows expired -, expired -; "
      "counts 2 2 2 0 2; C exit:0; rows released exit:0, expired -, expired -; "
      "counts 3 2 2 0 0");
}
MUTANT("the history lists a run that died after a later one",
       {"  if is_due then M.sweep.run() end  -- a run whose lease ended before is listed before "
        "this one\n"
        "  reply = end_hold(line)",
        "  reply = end_hold(line)\n  if is_due then M.sweep.run() end"});

// Others have ended since, and one is held that shares the lock.
CASE("ends: a second end replaces the row of the first, wherever that is") {
  lab.play(
      "A granted shared; 31s pass; BC granted shared; B exit:0; C exit:1; A restored shared; "
      "rows released exit:1, released exit:0, expired -; 31s pass");
  need_unseen(lab, "rows released exit:1, released exit:0, expired -; counts 3 2 1 0 1");
  lab.play(
      "D granted shared; 31s pass; E granted shared; E exit:0; D restored shared; D exit:3; "
      "rows released exit:0, released exit:3, released exit:1, released exit:0, expired -");
}
MUTANT("the second end of a lease replaces only the newest row",
       {"for place = 0, memory.keep - 1 do", "for place = 0, 0 do"});

}  // namespace
}  // namespace rlock::contract
