#include "simulation/ledger.hpp"

#include <algorithm>
#include <array>

namespace rlock::sim {
namespace {

// A grant that nobody claims ends so soon, and a waiter looks so late after it.
constexpr Nanos kClaim = 2s;
constexpr Nanos kSlack = 1s;

}  // namespace

const char* to_string(Check check) {
  constexpr std::array kNames{"two commands at once",
                              "tokens do not grow",
                              "not in order",
                              "waits too long",
                              "left behind",
                              "done once more",
                              "done by nobody",
                              "the newest does not win",
                              "an operator is not obeyed",
                              "granted while it is closed",
                              "free before its time"};
  return kNames.at(static_cast<size_t>(check));
}

Ledger::Ledger(const World& world, const Scenario& scenario)
    : world_(world), scenario_(scenario), records_(scenario.runs.size()) {}

std::string Ledger::name(size_t run) const {
  return "run " + std::to_string(run);
}

std::string Ledger::with_token(size_t run) const {
  return name(run) + " (token " + std::to_string(records_[run].token) + ")";
}

void Ledger::trace(const std::string& text) {
  if (trace_ != nullptr) trace_->push_back(in_seconds(world_.now()) + "  " + text);
}

void Ledger::report(Check check, const std::string& text) {
  if (!scenario_.setting.checks.contains(check)) return;
  violations_.push_back({check, world_.now(), text});
  trace(std::string("VIOLATION, ") + to_string(check) + ": " + text);
}

void Ledger::came(size_t run) {
  ++there_;
  ++counts_.runs;
  records_[run].phase = RunRecord::Phase::asking;
  records_[run].asked = world_.now();
  trace(name(run) + " comes");
}

void Ledger::queued(size_t run, uint64_t ticket) {
  RunRecord& record = records_[run];
  if (record.phase == RunRecord::Phase::asking) {
    ++counts_.queued;
    record.phase = RunRecord::Phase::waiting;
    record.queued = world_.now();
    book_of(run).waiting.push_back(run);
    trace(name(run) + " waits with ticket " + std::to_string(ticket));
  }
  // As a later call it has the place of the first one.
  record.ticket = record.calls > 1 && record.ticket != 0 ? std::min(record.ticket, ticket) : ticket;
}

void Ledger::goes_away(size_t run) {
  records_[run].phase = RunRecord::Phase::coming;
  records_[run].queued = Moment::max();
  std::erase(book_of(run).waiting, run);
  trace(name(run) + " goes away");
}

void Ledger::returns(size_t run) {
  ++counts_.returned;
  ++records_[run].calls;
  records_[run].phase = RunRecord::Phase::asking;
  trace(name(run) + " returns");
}

void Ledger::granted(size_t run, uint64_t token) {
  RunRecord& record = records_[run];
  record.phase = RunRecord::Phase::granted;
  record.granted = world_.now();
  record.token = token;
  LockBook& book = book_of(run);
  check_passing(book);
  std::erase(book.waiting, run);
  book.granted[token] = run;
  if (book.freed.contains(token)) free_at_once(run, book);
  if (has_usual_place(run)) check_order(run, book);
  check_places(run, book);
  check_inherited(run);
  trace(name(run) + " has the lock with token " + std::to_string(token));
}

void Ledger::started(size_t run) {
  RunRecord& record = records_[run];
  LockBook& book = book_of(run);
  record.phase = RunRecord::Phase::running;
  record.started = world_.now();
  record.ran = true;
  ++counts_.commands;
  trace(name(run) + " starts its command");
  if (record.freed) return;  // an operator had it so
  check_exclusion(run, book);
  check_tokens(run, book);
  check_prompt(run, book);
  check_repeated(run, book);
  check_failures(run, book);
  check_newest(run, book);
  check_closed(run, book);
  check_passing(book);
  check_min_hold(run, book);
  book.running.push_back(run);
  if (const Nanos min_hold = scenario_.runs[run].min_hold; min_hold > 0s) {
    book.cooling.push_back(run);
    book.leased_until = std::max(book.leased_until, record.granted + min_hold * 101 / 100);
  }
}

void Ledger::stopped(size_t run, bool succeeded) {
  LockBook& book = book_of(run);
  records_[run].stopped = world_.now();
  records_[run].succeeded = succeeded;
  counts_.successes += succeeded ? 1 : 0;
  check_broken(run);
  if (std::erase(book.running, run) == 0) return;
  book.free_since = world_.now();
  // Its rlock may be stopped, or cut off.
  if (records_[run].disturbed) died(run);
  trace("the command of " + name(run) + " has ended" + (succeeded ? "" : ", and did not succeed"));
}

void Ledger::died(size_t run, Nanos late) {
  LockBook& book = book_of(run);
  const Run& plan = scenario_.runs[run];
  const Nanos lease = std::max<Nanos>(kClaim, std::max(plan.ttl, plan.min_hold) * 101 / 100);
  book.leased_until = std::max(book.leased_until, world_.now() + late + lease);
  records_[run].disturbed = true;
}

// Its release may come late.
void Ledger::note_mishap(size_t run) {
  records_[run].disturbed = true;
  const bool releases =
      records_[run].phase == RunRecord::Phase::running && records_[run].stopped > 0s;
  if (releases) died(run);
}

void Ledger::left(size_t run) {
  --there_;
  RunRecord& record = records_[run];
  record.left = world_.now();
  check_given_up(run);
  check_passing(book_of(run));
  // It may have been granted the lock without knowing, or have been cut off from giving it back.
  if (record.disturbed) died(run, kLatest);
  // Who was refused leaves no tombstone, against which a repeated request would come too late.
  const bool forgets = book_of(run).forgets_until >= record.asked;
  if ((scenario_.runs[run].patience == 0s || forgets) && !record.ran) died(run, kLatest);
  record.phase = RunRecord::Phase::over;
  std::erase(book_of(run).waiting, run);
  trace(name(run) + " is gone");
}

void Ledger::check_exclusion(size_t run, const LockBook& book) {
  uint64_t limit = scenario_.runs[run].limit.value();
  for (size_t other : book.running) limit = std::min(limit, scenario_.runs[other].limit.value());
  if (book.running.size() < limit) return;
  ++counts_.overlaps;
  report(Check::exclusion, with_token(run) + " overlaps " + with_token(book.running.front()));
}

// Beside others a command may start a little later than one that was granted the lock after it.
void Ledger::check_tokens(size_t run, LockBook& book) {
  const uint64_t token = records_[run].token;
  const bool alone = book.running.empty() && !scenario_.setting.modes;
  if (token <= book.highest && alone) {
    report(Check::tokens, name(run) + " has token " + std::to_string(token) + " after " +
                              std::to_string(book.highest));
  }
  for (size_t other : book.running) {
    if (records_[other].token == token) report(Check::tokens, name(run) + " shares its token");
  }
  book.highest = std::max(book.highest, token);
}

// Nobody with a later ticket was granted the lock before one that waited and was well. Tokens say
// in which order the server granted it; tickets come from the same counter, as if who was granted
// it at once had had its token for a ticket. A run that missed a reply may have waited without
// hearing of its ticket; where it stood then is unknown.
void Ledger::check_order(size_t run, LockBook& book) {
  const RunRecord& record = records_[run];
  if (record.ticket == 0 && record.disturbed) return;
  const uint64_t own = record.ticket == 0 ? record.token : record.ticket;
  auto next = book.served.lower_bound(record.token);
  const uint64_t before = next == book.served.begin() ? 0 : std::prev(next)->second;
  const bool well = !record.disturbed && record.ticket != 0 && server_mishap_ < record.queued;
  if (well && record.calls > 1) {
    check_returned(run, book);
  } else if (well && before > own && !may_inherit(run)) {
    report(Check::order, name(run) + " with ticket " + std::to_string(own) +
                             " was granted the lock after one with ticket " +
                             std::to_string(before));
  }
  next = book.served.emplace_hint(next, record.token, std::max(before, own));
  for (++next; next != book.served.end() && next->second < own; ++next) next->second = own;
}

// While one that has returned is in the queue, no later one is granted the lock.
void Ledger::check_returned(size_t run, const LockBook& book) {
  constexpr Nanos kGrantKnown = 1s;  // so long after the grant its owner knows of it
  const RunRecord& record = records_[run];
  for (const auto& [token, other] : book.granted) {
    const RunRecord& before = records_[other];
    const uint64_t ticket = before.ticket == 0 ? token : before.ticket;
    const bool overtook = token < record.token && record.queued < before.granted - kGrantKnown;
    if (!overtook || before.disturbed || ticket < record.ticket) continue;
    return report(Check::order, name(run) + " returned, and was granted the lock after " +
                                    name(other) + ", which first asked later");
  }
}

// To one that came and knows nothing yet.
bool Ledger::may_be_granted_unknown(size_t lock) const {
  for (size_t run = 0; run < records_.size(); ++run) {
    const bool asks = records_[run].phase == RunRecord::Phase::asking && records_[run].disturbed;
    if (asks && scenario_.runs[run].lock == lock) return true;
  }
  return false;
}

// While one waited that was well: from when the lock was free to this command's start. A grant to
// one that is stopped or cut off ends with its claim.
void Ledger::check_prompt(size_t run, const LockBook& book) {
  const RunRecord& record = records_[run];
  if (record.disturbed || record.ticket == 0 || !book.running.empty()) return;
  const bool passes = scenario_.runs[run].while_closed;
  const Moment closed_until = closed_at_most(book);
  Moment since = std::max({book.free_since, book.leased_until, record.queued});
  // One that passes finds that out when it asks the next time.
  if (passes && closed_until >= record.asked) since += kPasses;
  if (!passes) since = std::max(since, closed_until);
  if (server_mishap_ + kLatest >= since) return;
  const Nanos gap = world_.now() - since;
  counts_.longest_gap = std::max(counts_.longest_gap, gap);
  if (gap <= kSlack) return;
  if (may_be_granted_unknown(scenario_.runs[run].lock)) return;
  const auto slow = std::count_if(book.waiting.begin(), book.waiting.end(),
                                  [this](size_t other) { return records_[other].disturbed; });
  if (gap <= kSlack + slow * (kClaim + kSlack)) return;
  report(Check::prompt, name(run) + " starts " + in_seconds(gap) + " after the lock was free");
}

}  // namespace rlock::sim
