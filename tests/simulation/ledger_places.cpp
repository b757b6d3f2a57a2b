// What closes a lock or keeps it taken, and who comes before whom.
#include <algorithm>

#include "simulation/ledger.hpp"

namespace rlock::sim {
namespace {

// Who was granted the lock before it was closed has begun so long after.
constexpr Nanos kBegun = 3s;
// How long after the grant its owner knows, if nothing befell it, and by how much clocks that
// measure how urgent one is may differ.
constexpr Nanos kGrantKnown = 1s;
constexpr Nanos kClocks = 500ms;

}  // namespace

// The time that passes at the server while a whole one passes here differs by less than 1 %.
void Ledger::asks_to_close(const Closing& closing) {
  LockBook& book = books_[closing.lock];
  trace("an operator " + std::string(closing.id.empty() ? "opens" : "closes") + " lock " +
        std::to_string(closing.lock) +
        (closing.id.empty() ? "" : " for " + in_seconds(closing.length)));
  if (const auto seen = book.closures.find(closing.seen); seen != book.closures.end()) {
    seen->second.until = std::min(seen->second.until, world_.now());
  }
  if (closing.id.empty()) return;
  auto& closure = book.closures[closing.id];
  closure.until = closing.looked + closing.length * 99 / 100;
  closure.at_most = world_.now() + closing.length * 101 / 100;
}

void Ledger::closed(const Closing& closing) {
  ++counts_.closed;
  LockBook& book = books_[closing.lock];
  trace("lock " + std::to_string(closing.lock) + (closing.id.empty() ? " is open" : " is closed"));
  if (const auto seen = book.closures.find(closing.seen); seen != book.closures.end()) {
    seen->second.at_most = std::min(seen->second.at_most, world_.now());
  }
  if (!closing.id.empty()) book.closures[closing.id].since = world_.now();
}

Moment Ledger::closed_at_most(const LockBook& book) {
  Moment until{-1h};
  for (const auto& [id, closure] : book.closures) until = std::max(until, closure.at_most);
  return until;
}

// Who came after the lock was closed begins after its end; of those that came before only one that
// had the lock may begin.
void Ledger::check_closed(size_t run, const LockBook& book) {
  const RunRecord& record = records_[run];
  if (scenario_.runs[run].while_closed) return;
  for (const auto& [id, closure] : book.closures) {
    const bool closed = closure.since <= world_.now() && world_.now() < closure.until;
    const bool had_it = record.asked <= closure.since &&
                        (record.disturbed || server_mishap_ + kLatest >= closure.since ||
                         world_.now() < closure.since + kBegun);
    if (!closed || had_it) continue;
    return report(Check::closed, name(run) + " starts " + in_seconds(world_.now() - closure.since) +
                                     " after the lock was closed");
  }
}

// Who may pass does not wait for the end while nobody has the lock.
void Ledger::check_passing(const LockBook& book) {
  if (!book.running.empty() || server_mishap_ + kLatest >= book.free_since) return;
  for (size_t waiter : book.waiting) {
    const RunRecord& record = records_[waiter];
    if (!scenario_.runs[waiter].while_closed || record.disturbed) continue;
    const Moment free = std::max({book.free_since, book.leased_until, record.queued});
    for (const auto& [id, closure] : book.closures) {
      const Nanos waited = std::min(closure.until, world_.now()) - std::max(free, closure.since);
      if (closure.since > world_.now() || waited <= kPasses + kBegun) continue;
      report(Check::prompt, name(waiter) + " does not pass the closure for " + in_seconds(waited));
    }
  }
}

// After a grant under which something ran nobody else begins for as long as its owner wanted.
void Ledger::check_min_hold(size_t run, const LockBook& book) {
  for (size_t before : book.cooling) {
    const RunRecord& record = records_[before];
    if (before == run || record.broken > 0s || record.token > records_[run].token) continue;
    const Moment granted = record.disturbed ? record.asked : record.granted - kGrantKnown;
    const Nanos early = granted + scenario_.runs[before].min_hold * 99 / 100 - world_.now();
    if (early <= 0s) continue;
    report(Check::min_hold, name(run) + " starts " + in_seconds(early) + " before the time that " +
                                name(before) + " has the lock at least");
  }
}

// Tickets say it all.
bool Ledger::has_usual_place(size_t run) const {
  const Run& plan = scenario_.runs[run];
  return plan.urgent == 0s && !plan.while_closed;
}

// In true time: who came, as it counts, before another one was granted the lock before it, unless
// that one passed a closure.
void Ledger::check_places(size_t run, const LockBook& book) {
  for (const auto& [token, other] : book.granted) {
    if (other == run || (has_usual_place(run) && has_usual_place(other))) continue;
    token < records_[run].token ? check_place(run, other, book) : check_place(other, run, book);
  }
}

void Ledger::check_place(size_t later, size_t before, const LockBook& book) {
  const RunRecord &late = records_[later], &first = records_[before];
  const Run &own = scenario_.runs[later], &other = scenario_.runs[before];
  const bool well = !late.disturbed && late.ticket != 0 && server_mishap_ < late.queued;
  const bool passed = other.while_closed && closed_at_most(book) >= first.asked;
  const Moment granted = first.disturbed ? first.asked : first.granted - kGrantKnown;
  const bool waited = late.queued < granted;
  if (!well || !waited || passed) return;
  if (late.queued - own.urgent + kClocks >= first.asked - other.urgent) return;
  report(Check::order,
         name(later) + " was granted the lock after " + name(before) + ", which came later");
}

}  // namespace rlock::sim
