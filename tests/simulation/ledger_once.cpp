// What is done once, what supersedes others, and what operators break.
#include <algorithm>

#include "simulation/ledger.hpp"

namespace rlock::sim {
namespace {

// Until the command of a hold that was broken has ended: the news, and the KILL after the TERM.
constexpr Nanos kObeyed = 6s;
// Until one that was superseded knows.
constexpr Nanos kKnown = 5s;

}  // namespace

// Nothing befell it or its messages, nor the servers lately.
bool Ledger::is_well(size_t run) const {
  const RunRecord& record = records_[run];
  return !record.disturbed && server_mishap_ + kLatest < record.asked;
}

// Whether the servers still have to know how that run ended: a period is kept for two.
bool Ledger::is_remembered(size_t run) const {
  const RunRecord& record = records_[run];
  if (data_lost_ >= record.asked) return false;
  if (books_.at(scenario_.runs[run].lock).forgets_until >= record.asked) return false;
  const bool period = scenario_.runs[run].once == OnceUse::period;
  return !period || world_.now() < record.stopped + kOncePeriod * 196 / 100;
}

// By the rules, and with what the clocks and the network leave open.
bool Ledger::is_done_by(size_t run, size_t before) const {
  if (scenario_.runs[run].once != OnceUse::within) return true;
  const Nanos slack = 500ms + scenario_.setting.skew;
  const RunRecord &own = records_[run], &other = records_[before];
  return is_well(run) && is_well(before) &&
         (other.granted > own.asked + slack || other.asked > own.asked - kOnceWithin + slack);
}

bool Ledger::may_be_done_by(size_t run, size_t before) const {
  if (scenario_.runs[run].once != OnceUse::within) return true;
  const RunRecord &own = records_[run], &other = records_[before];
  const Nanos slack = is_well(before) ? 500ms + scenario_.setting.skew : kLatest;
  return other.granted > own.asked - slack || other.asked > own.asked - kOnceWithin - slack;
}

void Ledger::asks(size_t run, std::string work) {
  book_of(run).works[work].push_back(run);
  records_[run].work = std::move(work);
}

void Ledger::found_done(size_t run, uint64_t token) {
  ++counts_.done;
  records_[run].phase = RunRecord::Phase::over;
  trace(name(run) + " finds its work done with token " + std::to_string(token));
  const LockBook& book = book_of(run);
  const auto found = book.granted.find(token);
  // It got that answer before an operator had it forgotten.
  if (token == 0 && book.forgets_until >= records_[run].asked) return;
  const bool same = found != book.granted.end() && records_[found->second].succeeded &&
                    records_[found->second].work == records_[run].work;
  const bool forgotten = same && records_[run].asked > book.forgot_at && is_well(found->second) &&
                         records_[found->second].left < book.forgot_before;
  if (same && !forgotten && may_be_done_by(run, found->second)) return;
  report(Check::done, name(run) + " finds its work done with token " + std::to_string(token));
}

void Ledger::asks_to_forget(size_t lock, Moment at_most) {
  LockBook& book = books_[lock];
  book.forgets_until = std::max(book.forgets_until, at_most);
  // Who found its work done left no tombstone: a repeated request may now be granted the lock.
  for (size_t run = 0; run < records_.size(); ++run) {
    const RunRecord& record = records_[run];
    const bool refused = record.phase == RunRecord::Phase::over && !record.ran;
    if (refused && scenario_.runs[run].lock == lock)
      died(run, record.left + kLatest - world_.now());
  }
  trace("an operator has it forgotten what was done under lock " + std::to_string(lock));
}

void Ledger::forgotten(size_t lock, Moment asked) {
  ++counts_.forgotten;
  books_[lock].forgot_before = asked;
  books_[lock].forgot_at = world_.now();
}

void Ledger::failed_too_often(size_t run, uint64_t times) {
  ++counts_.failed_too_often;
  records_[run].phase = RunRecord::Phase::over;
  trace(name(run) + " finds that its work failed " + std::to_string(times) + " times");
  const auto& works = book_of(run).works[records_[run].work];
  const auto failures = std::count_if(works.begin(), works.end(), [&](size_t other) {
    return other != run && !records_[other].recorded;
  });
  if (times >= *scenario_.runs[run].max_failures && times <= static_cast<uint64_t>(failures))
    return;
  report(Check::done,
         name(run) + " finds that its work failed " + std::to_string(times) + " times");
}

// What is recorded nobody does again: tokens say who came later.
void Ledger::check_repeated(size_t run, const LockBook& book) {
  const RunRecord& record = records_[run];
  if (record.work.empty()) return;
  for (size_t other : book.works.at(record.work)) {
    const bool before = records_[other].recorded && records_[other].token < record.token;
    if (other == run || !before || !is_remembered(other) || !is_done_by(run, other)) continue;
    return report(Check::repeated,
                  with_token(run) + " does what " + with_token(other) + " has done");
  }
}

// Nobody tries again what has failed so often since the last success.
void Ledger::check_failures(size_t run, const LockBook& book) {
  const RunRecord& record = records_[run];
  const Run& plan = scenario_.runs[run];
  if (!plan.max_failures || plan.once == OnceUse::within) return;
  uint64_t since = 0, failures = 0;
  for (size_t other : book.works.at(record.work)) {
    if (records_[other].succeeded) since = std::max(since, records_[other].token);
  }
  for (size_t other : book.works.at(record.work)) {
    const uint64_t token = records_[other].token;
    const bool counts = records_[other].failed && is_remembered(other);
    if (counts && token > since && token < record.token) ++failures;
  }
  if (failures < *plan.max_failures) return;
  report(Check::repeated,
         name(run) + " tries again what has failed " + std::to_string(failures) + " times");
}

void Ledger::released(size_t run, bool confirmed, bool marked) {
  RunRecord& record = records_[run];
  const LockBook& book = book_of(run);
  record.recorded = record.succeeded && marked;
  record.failed = confirmed && !record.succeeded && scenario_.runs[run].max_failures.has_value();
  trace(name(run) + (record.recorded ? " has its success recorded" : " is released"));
  if (record.succeeded && !marked && is_well(run) && record.broken == 0s) {
    report(Check::repeated, name(run) + " has succeeded, and it is not recorded");
  }
  if (!record.recorded) return;
  for (size_t other : book.works.at(record.work)) {
    if (other != run && records_[other].ran && records_[other].started > record.stopped) {
      check_repeated(other, book);
    }
  }
}

// Who is well and waits without a limit goes only when there is nothing left to do.
void Ledger::check_given_up(size_t run) {
  const RunRecord& record = records_[run];
  const bool gives_up = record.phase == RunRecord::Phase::waiting && is_well(run) &&
                        scenario_.runs[run].patience == Nanos::max();
  if (gives_up) report(Check::prompt, name(run) + " gives up although nothing is wrong");
}

void Ledger::superseded(size_t run, size_t by) {
  ++counts_.superseded;
  const Run &plan = scenario_.runs[run], &other = scenario_.runs[by];
  const std::string text = name(run) + " is superseded by " + name(by);
  trace(text);
  RunRecord& newer = records_[by];
  records_[run].phase = RunRecord::Phase::over;
  const bool same = by != run && other.lock == plan.lock && other.supersedes &&
                    newer.phase != RunRecord::Phase::coming;
  const bool older = plan.number && other.number && *other.number < *plan.number;
  if (!same || older) return report(Check::newest, text);
  if (records_[run].disturbed || records_[run].ticket == 0) return;
  newer.inherits = std::min(newer.inherits, records_[run].ticket);
  if (newer.token != 0) check_inherited(by);
}

// It has the place of the one that it replaced.
void Ledger::check_inherited(size_t run) {
  const RunRecord& record = records_[run];
  if (record.disturbed || record.ticket <= record.inherits) return;
  report(Check::newest, name(run) + " waited with ticket " + std::to_string(record.ticket) +
                            " instead of " + std::to_string(record.inherits));
}

// The place of one that was not well, and perhaps not there when its turn came.
bool Ledger::may_inherit(size_t run) const {
  const auto& plans = scenario_.runs;
  if (!plans[run].supersedes) return false;
  for (size_t other = 0; other < plans.size(); ++other) {
    const RunRecord& record = records_[other];
    const bool before =
        record.phase != RunRecord::Phase::coming && record.asked < records_[run].asked;
    const bool same = plans[other].supersedes && plans[other].lock == plans[run].lock;
    if (same && before && record.disturbed) return true;
  }
  return false;
}

// An older one never runs after a newer one, and only one waits.
void Ledger::check_newest(size_t run, LockBook& book) {
  const Run& plan = scenario_.runs[run];
  if (plan.number) {
    auto& numbers = book.numbers;
    const auto here = numbers.emplace(records_[run].token, *plan.number).first;
    const bool before = here != numbers.begin() && std::prev(here)->second > here->second;
    const bool after = std::next(here) != numbers.end() && std::next(here)->second < here->second;
    if (before || after) {
      report(Check::newest, name(run) + " with number " + std::to_string(*plan.number) +
                                " does not run in the order of the numbers");
    }
  }
  const auto waiting = std::count_if(book.waiting.begin(), book.waiting.end(), [&](size_t other) {
    return scenario_.runs[other].supersedes && is_well(other) &&
           records_[other].queued + kKnown < world_.now();
  });
  if (waiting > 1) report(Check::newest, std::to_string(waiting) + " wait, and supersede others");
}

void Ledger::broken(size_t lock, uint64_t token, bool counts) {
  LockBook& book = books_[lock];
  const auto found = book.granted.find(token);
  if (found == book.granted.end()) {
    if (!counts) book.freed.insert(token);
    return;
  }
  const size_t run = found->second;
  ++counts_.broken;
  trace("an operator breaks the hold of " + name(run));
  records_[run].broken = world_.now();
  if (!counts) free_at_once(run, book);
}

// Others may begin beside it.
void Ledger::free_at_once(size_t run, LockBook& book) {
  note_mishap(run);
  records_[run].freed = true;
  if (std::erase(book.running, run) > 0) book.free_since = world_.now();
}

void Ledger::check_broken(size_t run) {
  const RunRecord& record = records_[run];
  const Nanos took = world_.now() - record.broken;
  if (record.broken == 0s || !is_well(run) || took <= kObeyed) return;
  report(Check::broken,
         name(run) + " ends its command " + in_seconds(took) + " after it was broken");
}

}  // namespace rlock::sim
