// How a run ends: what its release, its lease, and the runs nested in it say of it.
#include "contract/mutants.hpp"
#include "contract/once.hpp"

namespace rlock::contract {
namespace {

using lock::Entry;
using lock::Renewal;

std::string counts(Lab& lab) {
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
  need(counts(lab) == counted, "runs, failures, losses, streak are " + counts(lab));
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
void put_back(Lab& lab) {
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

}  // namespace

const std::vector<NamedCase>& once_end_cases() {
  static const std::vector<NamedCase> cases{
      {"ends: a lease that is put back leaves one run", put_back},
      {"ends: a late success that counts is the last one", late},
      {"ends: the outer run's end is that of the run", nested},
      {"ends: an outer run that died has failed, whatever nested ones do", outlived},
      {"ends: one that was asked to stop has neither succeeded nor failed", stopped},
      {"ends: what a put-back restores", restored},
  };
  return cases;
}

namespace {

const std::vector<Mutant> kUsualWay{
    {"a run whose lease was put back is counted again",
     {{"tombstone(owner .. ':counted') and ' counted=1' or ''", "''"}},
     "ends: a lease"},
    {"a run whose lease was put back is listed again",
     {{"write_history(row, counted and row_of(line.token))", "write_history(row)"}},
     "ends: a lease"},
    {"the failure of a run whose lease was put back counts again",
     {{"note ~= 'stopped' and not line_word(line, 'counted') then", "note ~= 'stopped' then"}},
     "ends: a lease"},
    {"the second end of a lease is a failure of its own",
     {{"if not line_word(line, 'counted') then note_failure(once_of(line)) end",
       "note_failure(once_of(line))"}},
     "ends: a lease"},
    {"the second end of a lease is not noted",
     {{"  add_tombstone(owner .. ':counted', EXPIRED)",
       "  if not line_word(line, 'counted') then add_tombstone(owner .. ':counted', EXPIRED) end"}},
     "ends: a lease"},
    {"the second end of a lease counts again",
     {{"if counted then return end\n    count('streak')", "count('streak')"}},
     "ends: a lease"},
    {"a late success is not listed",
     {{"  note_run(owner, {token = number,", "  local _ = ({token = number,"}},
     "ends: a late success"},
    {"the end of a nested run is that of the run",
     {{"result = line_word(line, 'result') or result", ""}},
     "ends: the outer"},
    {"a repeated end of the outer run counts again",
     {{"repeated and mark_before() or note_outcome(line)", "note_outcome(line)"}},
     "ends: the outer"},
    {"a nested run that died is one that failed",
     {{"line.state ~= 'held' or ended then", "line.state ~= 'held' then"}},
     "ends: the outer"},
    {"an outer run that died has ended as the nested one",
     {{"if how == 'released' and entry ~= '0' and not forced then", "if false then"}},
     "ends: an outer"},
    {"a success after the entry's lease is not marked",
     {{"repeated and mark_before() or",
       "(repeated or not live_entries(line)['0']) and mark_before() or"}},
     "ends: an outer"},
    {"one that was asked to stop has failed", {{"and note ~= 'stopped' and", "and"}}, "ends: one"},
    {"a put-back loses what is done once",
     {{"with_slot(words_again(since), slot)", "with_slot('', slot)"}},
     "ends: what"},
    {"a put-back loses how many rows are kept",
     {{"if (keep_rows or '') ~= '' then note_keep(tonumber(keep_rows)) end", ""}},
     "ends: what"},
    {"a put-back by a nested run loses what is done once",
     {{"line.words = line.words .. words_again(line.since)", ""}},
     "ends: what"},
};

const std::vector<Mutant> kShortWays{
    {"the short way counts a run whose lease was put back again",
     {{"not string.find(line, ' counted=', 1, true) and", ""}},
     "ends: a lease"},
};

}  // namespace

const std::vector<Mutant>& once_end_mutants(Way way) {
  return way == Way::usual ? kUsualWay : kShortWays;
}

}  // namespace rlock::contract
