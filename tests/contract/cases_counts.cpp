// What the scripts count of the runs of a lock, whatever the history keeps.
#include "contract/mutants.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::Entry;

void end_with(Lab& lab, char owner, const std::string& result) {
  lab.release(owner, Entry::outer(), result);
}

std::string counts(Lab& lab) {
  const lock::Snapshot seen = lab.inspect();
  const lock::Counters& all = seen.counters;
  auto text = [](uint64_t n) { return std::to_string(n) + " "; };
  return text(all.runs) + text(all.failures) + text(all.losses) + text(all.skips) +
         std::to_string(seen.failures_in_a_row);
}

void need_counts(Lab& lab, const std::string& wanted, const std::string& when) {
  const std::string found = counts(lab);
  need(found == wanted, when + ": runs, failures, losses, skips, streak are " + found);
}

void runs_counted(Lab& lab) {
  need_counts(lab, "0 0 0 0 0", "before");
  lab.granted('A');
  lab.pass(5s);
  end_with(lab, 'A', "exit:0");
  need_counts(lab, "1 0 0 0 0", "a success");
  lab.granted('B');
  end_with(lab, 'B', "exit:7");
  lab.granted('C');
  lab.pass(1s);
  end_with(lab, 'C', "signal:9");
  need_counts(lab, "3 2 0 0 2", "two failures");
  lock::Snapshot seen = lab.inspect();
  need(seen.last_success && seen.last_failure, "the last ends are missing");
  need(seen.last_success->took == 5s && seen.last_success->record == "record of A", "not A's");
  need(seen.last_failure->result == "signal:9" && seen.last_failure->took == 1s, "not C's");
  need(seen.last_failure->at == seen.now && seen.now.ms - seen.last_success->at.ms == 1000, "when");
  lab.granted('D');
  lab.queued('E');
  end_with(lab, 'D', "exit:0");
  need_counts(lab, "4 2 0 0 0", "a hand-over");
  lab.granted('E');
  end_with(lab, 'E', "-");
  need_counts(lab, "5 2 0 0 0", "an unknown result");
  lab.granted('F');
  end_with(lab, 'F', "stopped");
  need_counts(lab, "6 2 0 0 0", "one that was asked to stop");
  need(lab.inspect().last_success->record == "record of D", "either is a success");
}

void counted_once(Lab& lab) {
  lab.granted('A');
  end_with(lab, 'A', "exit:7");
  end_with(lab, 'A', "exit:7");
  end_with(lab, 'A', "exit:0");
  need_counts(lab, "1 1 0 0 1", "a repeated release");
  need(!lab.inspect().last_success, "a repeated release is a success");
}

void losses_counted(Lab& lab) {
  lab.granted('A');
  lab.pass(31s);
  lab.granted('B');
  need_counts(lab, "1 1 1 0 1", "a run that died");
  need(lab.inspect().last_failure->result == "expired", "not how it was lost");
  lab.force();
  end_with(lab, 'B', "exit:0");
  need_counts(lab, "2 2 2 0 2", "a run that was forced out");
  need(lab.inspect().last_failure->result == "forced" && !lab.inspect().last_success, "a success");
  lab.granted('C');
  end_with(lab, 'C', "lost");
  need_counts(lab, "3 3 3 0 3", "a run that lost its lease");
  lab.granted('D');
  lab.queued('E');
  end_with(lab, 'D', "exit:0");
  lab.pass(3s);
  lab.granted('F');
  need_counts(lab, "4 3 3 0 0", "a grant that nobody claimed");
}

void skips_counted(Lab& lab) {
  Ask now;
  now.queueing = lock::Queueing::never;
  lab.granted('A');
  as<lock::Busy>(lab.acquire('B', now), "not busy");
  lab.queued('C');
  lab.cancel('C', lock::CancelHow::timed_out);
  lab.queued('D');
  lab.cancel('D');
  need_counts(lab, "0 0 0 2 0", "skips");
  as<lock::Busy>(lab.acquire('E', now), "not busy");
  as<lock::Busy>(lab.acquire('E', now), "not busy");
  need_counts(lab, "0 0 0 3 0", "a repeated request");
  as<lock::Busy>(lab.acquire('B', now), "not busy");
  need_counts(lab, "0 0 0 4 0", "another one");
}

// What is known of the last success does not depend on the history.
void rows_kept(Lab& lab) {
  auto rows = [&] { return lab.history().size(); };
  Ask three;
  three.history_rows = 3;
  for (char owner = 'A'; owner < 'F'; ++owner) {
    lab.granted(owner, three);
    end_with(lab, owner, owner == 'A' ? "exit:0" : "exit:1");
  }
  need(rows() == 3, "not three rows");
  need_counts(lab, "5 4 0 0 4", "more runs than rows");
  need(lab.inspect().last_success->record == "record of A", "the success went with its row");
  lab.granted('F', three);
  Ask none;
  none.history_rows = 0;
  lab.queued('G', none);
  end_with(lab, 'F', "exit:1");
  need(rows() == 3, "a waiter's number counts before its run");
  lab.granted('G', none);
  lab.pass(31s);
  lab.granted('H');
  need(rows() == 0, "a sweep writes a row that the run does not want");
  need_counts(lab, "7 6 1 0 6", "without rows");
  end_with(lab, 'H', "exit:0");
  need(rows() == 1 && lab.inspect().last_success->record == "record of H", "the last run's number");
}

// A hostile or long record breaks nothing, and a lock that is only read is not changed.
void strange_records(Lab& lab) {
  Ask ask;
  const std::string hostile = "a|b runs=99 keep=1 failed=1,2,3 streak=7\n|x";
  ask.record = hostile;
  lab.granted('A', ask);
  end_with(lab, 'A', "exit:0");
  lab.granted('B');
  end_with(lab, 'B', "exit:1 runs=5");
  need_counts(lab, "2 1 0 0 1", "beside a hostile record");
  need(lab.inspect().last_success->record == hostile, "not the record");
  ask.record = std::string(10'000, 'x');
  lab.granted('C', ask);
  end_with(lab, 'C', "exit:0");
  need(lab.inspect().last_success && lab.inspect().last_success->record.empty(), "not cut");
  need(std::stoul(lab.cli({"STRLEN", lab.key("meta")})) < 1000, "the memory has no bound");
  const std::string before = lab.fingerprint();
  lab.inspect();
  need(lab.fingerprint() == before, "a look writes");
}

}  // namespace

const std::vector<NamedCase>& count_cases() {
  static const std::vector<NamedCase> cases{
      {"counts: successes and failures, and the last of each", runs_counted},
      {"counts: a repeated release counts once", counted_once},
      {"counts: runs that died, lost the lease or were forced out", losses_counted},
      {"counts: skips", skips_counted},
      {"counts: the last run says how many rows the history keeps", rows_kept},
      {"counts: records of any form and length", strange_records},
  };
  return cases;
}

namespace {

const std::vector<Mutant> kCountMutants{
    {"no run is counted", {{"if not counted then s.count('runs') end", ""}}, "counts: successes"},
    {"a failure is not counted", {{"  s.count('failures')\n", ""}}, "counts: successes"},
    {"a success does not end the failures in a row",
     {{"s.words = string.gsub(s.words, ' streak=%d+', '') end", "end"}},
     "counts: successes"},
    {"a release without a result is a failure",
     {{"elseif result ~= '-' and", "elseif"}},
     "counts: successes"},
    {"a run that was asked to stop has failed",
     {{"and result ~= 'stopped' or", "or"}},
     "counts: successes"},
    {"the record of the last success is unbounded",
     {{"#row <= 4096 and row or", "row or"}},
     "counts: records"},
    {"the record is read as words",
     {{"([^%s|]+)([^|]*)(.*)$'", "([^%s|]+)(.*)()$'"}},
     "counts: records"},
    {"a repeated refusal counts twice",
     {{"if string.match(s.words, ' skipped=%S+') == counted then return end", ""}},
     "counts: skips"},
    {"a skip is not counted",
     {{"  s.count(how == 'done' and 'done' or 'skips')\n", ""}},
     "counts: skips"},
    {"a loss is not counted",
     {{"if how ~= 'released' or result == 'lost' then", "if result == 'lost' then"}},
     "counts: runs that died"},
    {"a run that lost its lease is no loss",
     {{"if how ~= 'released' or result == 'lost' then", "if how ~= 'released' then"}},
     "counts: runs that died"},
    {"a forced run that ends with 0 is a success",
     {{"if result == 'exit:0' and how == 'released' then", "if result == 'exit:0' then"}},
     "counts: runs that died"},
    {"what was counted is not written",
     {{"s.count(how == 'done' and 'done' or 'skips')\n  s.changed = true",
       "s.count(how == 'done' and 'done' or 'skips')"}},
     "counts: skips"},
    {"the number of rows is not stored with a claim",
     {{"if s.keep ~= rows then s.note_keep(rows) end  -- a sweep", "-- a sweep"}},
     "counts: the last run"},
    {"the number of rows is not stored with a grant",
     {{"if s.keep ~= rows then s.note_keep(rows) end\n  s.grant(", "s.grant("}},
     "counts: the last run"},
    {"no rows means all rows",
     {{"if s.keep == 0 then return call('DEL', HISTORY) end", ""}},
     "counts: the last run"},
};

}  // namespace

const std::vector<Mutant>& count_mutants() {
  return kCountMutants;
}

}  // namespace rlock::contract
