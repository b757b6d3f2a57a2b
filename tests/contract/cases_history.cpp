// The history of the runs, written by the same calls that end them.
#include "contract/lab.hpp"

namespace rlock::contract {
namespace {

using namespace std::chrono_literals;
using lock::CancelHow;
using lock::Run;
using lock::Skips;

const Run& run_at(const std::vector<lock::HistoryRow>& history, size_t i) {
  need(i < history.size(), "a run is missing");
  return as<Run>(history[i], "not a run");
}

void runs_newest_first(Lab& lab) {
  lock::Token first = lab.granted('A');
  lab.pass(5s);
  lab.release('A', lock::Entry::outer(), "exit:7");
  lab.granted('B');
  lab.release('B', lock::Entry::outer(), "signal:9");
  const auto history = lab.history();
  need(history.size() == 2, "not two runs");
  need(run_at(history, 0).result == "signal:9", "not the newest first");
  const Run& run = run_at(history, 1);
  need(run.token == first && run.result == "exit:7" && run.how == "released", "not as it ended");
  need(run.until.ms - run.since.ms == 5000, "not its length");
  need(run.record == "record of A", "not who");
}

void repeated_release_is_one_run(Lab& lab) {
  lab.granted('A');
  lab.release('A');
  lab.release('A');
  need(lab.history().size() == 1, "a repeated release is a second run");
}

// Nothing is running for ever, and what was lost is listed as such.
void lost_and_forced_runs(Lab& lab) {
  lab.granted('A');
  lab.pass(31s);
  lab.granted('B');
  need(run_at(lab.history(), 0).how == "expired", "the crashed run is not listed");
  lab.force();
  lab.release('B', lock::Entry::outer(), "signal:15");
  need(run_at(lab.history(), 0).how == "forced", "the forced run is not listed");
  need(run_at(lab.history(), 0).note == "by the operator", "not who forced it");
  need(run_at(lab.history(), 0).record == "record of B", "not whom");
  need(run_at(lab.history(), 0).result == "signal:15", "not how it ended");
  lab.granted('C');
  lab.force(lock::ForceWhen::now);
  need(run_at(lab.history(), 0).how == "forced" && lab.history().size() == 3, "not three runs");
  need(run_at(lab.history(), 0).note == "by the operator", "not who forced it at once");
  lab.granted('D');
  lab.force();
  lab.pass(31s);
  lab.granted('E');
  need(run_at(lab.history(), 0).how == "forced", "one that never confirmed is not listed");
  need(run_at(lab.history(), 0).note == "by the operator", "not who forced the silent one");
}

void forced_cooldown(Lab& lab) {
  Ask kept;
  kept.min_hold = 60s;
  lab.granted('A', kept);
  lab.release('A', lock::Entry::outer(), "exit:0");
  lab.force();
  lab.granted('B', kept);
  lab.release('B', lock::Entry::outer(), "exit:1");
  const auto history = lab.history();
  need(history.size() == 2, "a forced cool-down is a row of its own");
  const Run& run = run_at(history, 1);
  need(run.how == "released" && run.result == "exit:0" && run.record == "record of A", "changed");
  need(run.note == "by the operator", "not who forced the cool-down");
  need(run_at(history, 0).note.empty(), "a run that nobody forced has a note");
}

void skips_share_a_row(Lab& lab) {
  Ask now;
  now.queueing = lock::Queueing::never;
  lab.granted('A');
  as<lock::Busy>(lab.acquire('B', now), "not busy");
  lab.pass(3s);
  as<lock::Busy>(lab.acquire('C', now), "not busy");
  lab.queued('D');
  lab.cancel('D', CancelHow::timed_out);
  lab.queued('E');
  lab.cancel('E');
  const auto history = lab.history();
  need(history.size() == 1, "skips do not share a row");
  const auto skips = as<Skips>(history[0], "no skips");
  need(skips.count == 3 && skips.record == "record of D", "not counted");
  need(skips.last.ms - skips.first.ms == 3000, "not when");
  lab.release('A');
  need(lab.history().size() == 2, "the run is not written before the skips");
}

void no_run_for_an_unclaimed_grant(Lab& lab) {
  lab.granted('A');
  lab.queued('B');
  lab.release('A');
  lab.pass(3s);
  lab.granted('C');
  need(lab.history().size() == 1, "a grant that nobody claimed ran");
}

void capped(Lab& lab) {
  for (int i = 0; i < 120; ++i) {
    char owner = static_cast<char>('A' + i % 26);
    lab.cli({"DEL", lab.key("released")});
    lab.granted(owner);
    lab.release(owner);
  }
  need(lab.cli({"LLEN", lab.key("history")}) == "100", "not capped");
  need(std::stoll(lab.cli({"PTTL", lab.key("history")})) > 0, "lives for ever");
}

}  // namespace

const std::vector<NamedCase>& history_cases() {
  static const std::vector<NamedCase> cases{
      {"history: runs, the newest first, with how they ended", runs_newest_first},
      {"history: a repeated release is one run", repeated_release_is_one_run},
      {"history: lost and forced runs are listed", lost_and_forced_runs},
      {"history: a forced cool-down is noted with its run", forced_cooldown},
      {"history: skipped runs between two runs share a row", skips_share_a_row},
      {"history: an unclaimed grant is not listed as a run", no_run_for_an_unclaimed_grant},
      {"history: capped and expiring", capped},
  };
  return cases;
}

}  // namespace rlock::contract
