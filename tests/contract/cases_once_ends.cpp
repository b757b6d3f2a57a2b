// How a run ends: what its release, its lease, and the runs nested in it say of it.
#include "contract/mutants.hpp"
#include "contract/once.hpp"

namespace rlock::contract {
namespace {

using lock::Entry;
using lock::Renewal;

std::string end_counts(Lab& lab) {
  const lock::Snapshot seen = lab.inspect();
  return std::to_string(seen.counters.runs) + " " + std::to_string(seen.counters.failures) + " " +
         std::to_string(seen.counters.losses) + " " + std::to_string(seen.failures_in_a_row);
}

// The runs of the history, the newest first, and what is counted of them.
void need_runs(Lab& lab, const std::string& wanted, const std::string& counted) {
  std::string found;
  for (const lock::HistoryRow& row : lab.history()) {
    if (const auto* run = std::get_if<lock::Run>(&row))
      found += run->how + " " + run->result + ", ";
  }
  need(found == wanted + ", ", "the history is " + found);
  need(end_counts(lab) == counted, "runs, failures, losses, streak are " + end_counts(lab));
}

Entry entry() {
  struct Fixed final : util::Random {
    uint64_t next() override { return 0x1234; }
  } fixed;
  return Entry::fresh(fixed);
}

Token runs_with_a_nested_one(Lab& lab, char owner, const Ask& ask) {
  const Token token = lab.granted(owner, ask);
  as<Renewal>(lab.renew(owner, token, {}, entry()), "the nested run does not enter");
  return token;
}

// Its lease has ended, and is put back: that is one run, which is counted once.
void once_put_back(Lab& lab) {
  const Once twice = key("k", 2);
  Token token = lab.granted('A', asks(twice));
  for (int i = 0; i < 3; ++i) {
    lab.pass(31s);
    need(as<Renewal>(lab.renew('A', token, asks(twice)), "lost") == Renewal::put_back, "not lost");
    need_runs(lab, "expired -", "1 1 1 1");
  }
  fails(lab, 'A', twice, token);
  need_runs(lab, "released exit:1", "1 1 1 1");
  need(lab.inspect().last_failure->result == "exit:1", "not how it ended");
  token = lab.granted('B', asks(twice));
  lab.pass(31s);
  as<Renewal>(lab.renew('B', token), "lost");
  lab.release('B', Entry::outer(), "exit:0");
  need_runs(lab, "released exit:0, released exit:1", "2 2 2 0");
  need(lab.inspect().last_success->record == "record of B", "no success");
}

// A success that comes after the lease's end, and counts, is the last one everywhere.
void late(Lab& lab) {
  const Once once = key("k", 1);
  Token token = lab.granted('A', asks(once));
  lab.pass(31s);
  for (int copy = 0; copy < 2; ++copy) {
    need(succeeds(lab, 'A', once, token) == Marked::yes, "not marked");
    need_runs(lab, "released exit:0", "1 1 1 0");
  }
  need(lab.inspect().last_success->record == "record of A", "no success");
  done(lab, 'B', asks(once));
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  token = lab.granted('C', asks(once));
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  need(succeeds(lab, 'C', once, token) == Marked::yes, "not marked after data loss");
  need_runs(lab, "released exit:0", "1 0 0 0");
  token = lab.granted('D', asks(key("other", 1)));
  lab.pass(31s);
  lab.granted('E');
  need(succeeds(lab, 'D', key("other", 1), token) == Marked::no, "marked though taken since");
  need_runs(lab, "expired -, released exit:0", "2 1 1 1");
}

// The end of the outer run is that of the run, however those that are nested in it end.
void nested(Lab& lab) {
  const Once twice = key("k", 2);
  fails(lab, 'A', twice, runs_with_a_nested_one(lab, 'A', asks(twice)));
  fails(lab, 'A', twice, {});
  lab.pass(31s);
  const Token token = runs_with_a_nested_one(lab, 'B', asks(twice));
  need_runs(lab, "released exit:1", "1 1 0 1");
  need(succeeds(lab, 'B', twice, token) == Marked::yes, "not marked");
  lab.release('B', entry(), "exit:3");
  need_runs(lab, "released exit:0, released exit:1", "2 1 0 0");
  fails(lab, 'C', key("j"), runs_with_a_nested_one(lab, 'C', asks(key("j"))));
  lab.release('C', entry(), "exit:0");
  need_runs(lab, "released exit:1, released exit:0, released exit:1", "3 2 0 1");
}

// The outer run has died, and those that are nested in it go on.
void outlived(Lab& lab) {
  const Once once = key("k", 1);
  Token token = runs_with_a_nested_one(lab, 'A', asks(once));
  lab.pass(20s);
  as<Renewal>(lab.renew('A', token, {}, entry()), "lost");
  lab.pass(20s);
  lab.release('A', entry(), "exit:0");
  need_runs(lab, "expired -", "1 1 1 1");
  as<FailedTooOften>(lab.acquire('B', asks(once)), "it has not failed");
  lab.forget();
  token = runs_with_a_nested_one(lab, 'C', asks(once));
  lab.pass(20s);
  as<Renewal>(lab.renew('C', token, {}, entry()), "lost");
  lab.pass(20s);
  need(succeeds(lab, 'C', once, token) == Marked::yes, "nobody else had it");
  lab.release('C', entry(), "exit:0");
  need_runs(lab, "released exit:0, expired -", "2 1 1 0");
}

// It returned 0, maybe half-way: neither a success nor a failure.
void stopped(Lab& lab) {
  const Once once = key("k", 1);
  const Token token = lab.granted('A', asks(once));
  lab.ends('A', {once, 0ms, token, false, {}}, "stopped");
  need_runs(lab, "released stopped", "1 0 0 0");
  need(!lab.inspect().last_success, "a success");
  lab.granted('B', asks(once));
}

// The words of a line that the server has lost.
void restored(Lab& lab) {
  Ask ask = asks(key("k", 1));
  ask.history_rows = 0;
  Token token = lab.granted('A', ask);
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  as<Renewal>(lab.renew('A', token, ask), "lost");
  lab.pass(31s);
  as<FailedTooOften>(lab.acquire('B', asks(key("k", 1))), "a run that died is not counted");
  need(lab.history().empty(), "a row that the run does not want");
  lab.forget();
  token = lab.granted('C', ask);
  lab.cli({"FLUSHALL"});
  lab.pass(1s);
  as<Renewal>(lab.renew('C', token, {}, entry()), "lost");
  as<Renewal>(lab.renew('C', token, ask), "lost");
  lab.pass(31s);
  as<FailedTooOften>(lab.acquire('D', asks(key("k", 1))), "put back by a nested run, not counted");
}

// ---- a run that died, and that no script has swept yet ----

std::string last_ends(Lab& lab) {
  const lock::Snapshot seen = lab.inspect();
  std::string text = end_counts(lab);
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
void need_unseen(Lab& lab, const std::string& wanted, const std::string& counted) {
  const std::string before = lab.fingerprint();
  need_runs(lab, wanted, counted);
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
    need(left == -2 || left > Millis(29 * kDay).count(), std::string(suffix) + " is not kept");
  }
}

void died(Lab& lab) {
  Token token = lab.granted('A');
  need_kept(lab);
  lab.pass(20s);
  as<Renewal>(lab.renew('A', token), "not extended");
  need_kept(lab);
  lab.pass(29'999ms);
  need(lab.history().empty() && end_counts(lab) == "0 0 0 0", "listed before its lease has ended");
  lab.pass(1ms);
  const auto row = as<lock::Run>(lab.history().at(0), "no run");
  need(row.until.ms - row.since.ms == 50'000, "its end is not that of its lease");
  need(row.renewed.ms - row.since.ms == 20'000, "it did not run until its last renewal");
  const auto last = lab.inspect().last_failure;
  need(last && last->at == row.until && last->took == 20s && last->result == "expired" &&
           last->record == "record of A",
       "the last failure is another one");
  need_unseen(lab, "expired -", "1 1 1 1");
  lab.granted('B');
  need_runs(lab, "expired -", "1 1 1 1");

  lab.queued('C');
  lab.queued('D');
  lab.release('B', Entry::outer(), "exit:0");
  lab.granted('C');
  need_kept(lab);
  lab.release('C', Entry::outer(), "exit:0");
  lab.granted('D');
  lab.pass(31s);
  need_unseen(lab, "expired -, released exit:0, released exit:0, expired -", "4 2 2 1");
}

// Whatever became of its hold meanwhile.
void died_otherwise(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.release('A', Entry::outer(), "exit:0");
  lab.pass(3s);
  need_unseen(lab, "released exit:0", "1 0 0 0");  // nobody claimed the grant

  lab.granted('C');
  lab.force();
  lab.pass(31s);
  need(as<lock::Run>(lab.history().at(0), "no run").note == "by the operator", "not who forced it");
  need_unseen(lab, "forced -, released exit:0", "2 1 1 1");

  const Token token = runs_with_a_nested_one(lab, 'D', {});
  lab.pass(20s);
  as<Renewal>(lab.renew('D', token, {}, entry()), "the nested run is lost");
  lab.release('D', Entry::outer(), "exit:0");
  lab.pass(31s);
  need_unseen(lab, "released exit:0, forced -, released exit:0", "3 1 1 0");

  Ask none;
  none.history_rows = 0;
  lab.granted('E', none);
  lab.pass(31s);
  need(lab.history().empty() && end_counts(lab) == "4 2 2 1", "a row that the run does not want");
}

// Those who look also find the row that a second end replaces.
void died_again(Lab& lab) {
  const Token token = lab.granted('A');
  for (int i = 0; i < 2; ++i) {
    lab.pass(24h);
    need(as<Renewal>(lab.renew('A', token), "nobody had it since") == Renewal::put_back,
         "not lost");
  }
  lab.pass(31s);
  need_unseen(lab, "expired -", "1 1 1 1");
}

void died_and_released(Lab& lab) {
  lab.granted('A');
  lab.pass(24h);
  const std::string before = last_ends(lab);
  need(lab.release('A', Entry::outer(), "exit:0").ending == lock::OwnerEnd::expired, "released");
  need(last_ends(lab) == before, "a late release changes how it ended");
}

// Of those that share a lock one has died before another ends.
void died_beside_others(Lab& lab) {
  Ask shared;
  shared.limit = lock::Limit::shared();
  lab.granted('A', shared);
  lab.granted('B', shared);
  shared.ttl = 10min;
  lab.granted('C', shared);
  lab.pass(31s);
  need_runs(lab, "expired -, expired -", "2 2 2 2");
  lab.release('C', Entry::outer(), "exit:0");
  need_runs(lab, "released exit:0, expired -, expired -", "3 2 2 0");
}

}  // namespace

const std::vector<NamedCase>& once_end_cases() {
  static const std::vector<NamedCase> cases{
      {"ends: a lease that is put back leaves one run", once_put_back},
      {"ends: a late success that counts is the last one", late},
      {"ends: the outer run's end is that of the run", nested},
      {"ends: an outer run that died has failed, whatever nested ones do", outlived},
      {"ends: one that was asked to stop has neither succeeded nor failed", stopped},
      {"ends: what a put-back restores", restored},
      {"ends: a run that died is seen from the end of its lease on", died},
      {"ends: of a hold that nobody has swept those see what happened who look", died_otherwise},
      {"ends: a run whose lease was put back after days has one end", died_again},
      {"ends: a release that comes after days changes nothing", died_and_released},
      {"ends: runs are listed in the order of their ends", died_beside_others},
  };
  return cases;
}

namespace {

const std::vector<Mutant> kOnceEndMutants{
    {"a run whose lease was put back is counted again",
     {{"line.words = line.words .. ' counted=1'", ""}},
     "ends: a lease"},
    {"a run whose lease was put back is listed again",
     {{"counted and s.row_of(line.token)", "nil"}},
     "ends: a lease"},
    {"the failure of a run whose lease was put back counts again",
     {{"note ~= 'stopped' and not s.line_word(line, 'counted') then", "note ~= 'stopped' then"}},
     "ends: a lease"},
    {"the second end of a lease is a failure of its own",
     {{"local what = not s.line_word(line, 'counted') and s.once_of(line)",
       "local what = s.once_of(line)"}},
     "ends: a lease"},
    {"the second end of a lease is not noted",
     {{"  s.add_tombstone(owner .. ':counted', 0)",
       "  if not s.line_word(line, 'counted') then s.add_tombstone(owner .. ':counted', 0) end"}},
     "ends: a lease"},
    {"the second end of a lease counts again",
     {{"if counted then return end\n  s.count('streak')", "s.count('streak')"}},
     "ends: a lease"},
    {"a late success is not listed",
     {{"  s.note_run(owner, {token = s.int(number),", "  local _ = ({token = s.int(number),"}},
     "ends: a late success"},
    {"the end of a nested run is that of the run",
     {{"result = string.match(line.words, ' result=(%S+)') or result", ""}},
     "ends: the outer"},
    {"a repeated end of the outer run counts again",
     {{"repeated and s.mark_before() or s.note_outcome(line)", "s.note_outcome(line)"}},
     "ends: the outer"},
    {"a nested run that died is one that failed",
     {{"line.state ~= 'held' or how ~= 'expired' then", "line.state ~= 'held' then"}},
     "ends: the outer"},
    {"an outer run that died has ended as the nested one",
     {{"if entry ~= '0' and not forced then", "if false then"}},
     "ends: an outer"},
    {"a success after the entry's lease is not marked",
     {{"repeated and s.mark_before() or",
       "(repeated or not s.live_entries(line)['0']) and s.mark_before() or"}},
     "ends: an outer"},
    {"one that was asked to stop has failed", {{"and note ~= 'stopped' and", "and"}}, "ends: one"},
    {"a put-back loses what is done once",
     {{"s.with_slot(s.words_again(since), slot)", "s.with_slot('', slot)"}},
     "ends: what"},
    {"a put-back loses how many rows are kept",
     {{"if (keep_rows or '') ~= '' then s.note_keep(tonumber(keep_rows)) end", ""}},
     "ends: what"},
    {"a put-back by a nested run loses what is done once",
     {{"line.words = line.words .. s.words_again(line.since)", ""}},
     "ends: what"},
    {"a hold that has ended goes after a minute",
     {{"math.max(ends + 2592000000, meta.hold)", "math.max(ends + 60000, meta.hold)"}},
     "ends: a run that died"},
    {"only writers see who died",
     {{"local owners, ends = s.ended_holders()\n", "local owners, ends = {}, {}\n"}},
     "ends: a run that died"},
    {"a run that died ends when that is found",
     {{"s.note_lapse(owner, line, tonumber(ends[i]))", "s.note_lapse(owner, line, now)"}},
     "ends: a run that died"},
    {"a run that died ran until its lease ended",
     {{"local renewed = math.max(line.since, ends - line.ttl)", "local renewed = ends"}},
     "ends: a run that died"},
    {"those who look do not see who failed",
     {{"counts[13] = record_of_end(rows, failed_at)", ""}},
     "ends: a run that died"},
    {"those who look take a grant for a run",
     {{"if not line or line.state == 'granted' or line.token == '0' then return nil end",
       "if not line then return nil end"}},
     "ends: of a hold"},
    {"those who look see rows that the run does not want",
     {{"math.min(math.max(rows_wanted, failed), s.keep)", "math.max(rows_wanted, failed)"}},
     "ends: of a hold"},
    {"those who look see the second end beside the first",
     {{"if at then rows[at] = row", "if false then rows[at] = row"}},
     "ends: a run whose"},
    {"a run that died is listed after one that ended later",
     {{"  if s.unswept then s.sweep_ended() end  -- a run whose lease ended before is listed "
       "before "
       "this one\n",
       ""},
      {"reply = reply or s.report_absent()",
       "if s.unswept then s.sweep_ended() end reply = reply or s.report_absent()"}},
     "ends: runs are listed"},
    {"a lone hold that has ended goes after a minute",
     {{"'PXAT', ends + 2592000000", "'PXAT', ends + 60000"}},
     "ends: a run that died"},
    {"a lone hold that was renewed goes after a minute",
     {{"call('PEXPIREAT', HOLDERS, ends + 2592000000)",
       "call('PEXPIREAT', HOLDERS, ends + 60000)"}},
     "ends: a run that died"},
};

}  // namespace

const std::vector<Mutant>& once_end_mutants() {
  return kOnceEndMutants;
}

}  // namespace rlock::contract
