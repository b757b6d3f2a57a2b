#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lock/inspector.hpp"
#include "redis/open.hpp"
#include "util/result.hpp"

namespace rlock::cli {

enum class LockState { free, closed, held, overdue, cooldown, broken };

// How long the renewal of this lease is overdue: a live holder renews it after each
// timing::renew_interval of its ttl. nullopt if no process renews it, and for a delay that is
// normal on a busy host.
std::optional<Millis> overdue(const lock::Holder& holder);

// Whether the process that renews a lease lives; unknown if no process renews it, or not yet.
enum class Life { unknown, alive, overdue, died };
Life life_of(const lock::Holder& holder);

// Whether the lock is closed at a majority of its servers, counting those that did not answer.
bool is_closed(const lock::Snapshot& snapshot);

// broken if any holder is broken, else overdue; cooldown if only cool-downs are left; closed if the
// lock would be free otherwise.
LockState state_of(const lock::Snapshot& snapshot);
std::string_view to_string(LockState state);

// The smallest limit of the holders, which decides whether another one is admitted. nullopt for a
// free lock.
std::optional<lock::Limit> limit_of(const lock::Snapshot& snapshot);
std::string_view to_string(lock::Mode mode);

// `native`, `plain` or `redisson`.
std::string_view to_string(redis::Format format);

// The locks that a command has to read: the named ones, and those that match a pattern.
struct Selection {
  std::vector<lock::LockName> names{};  // each once
  std::vector<std::string> patterns{};

  bool empty() const { return names.empty() && patterns.empty(); }
  // Whether a listing is needed: for patterns, or for all locks if there are neither names nor
  // patterns.
  bool is_listing() const { return names.empty() || !patterns.empty(); }
  // Whether a lock of the listing is selected, by a pattern or because all are; false if it is
  // already selected by its name.
  bool lists(const lock::LockName& name) const;
};

// A lock as `status` shows it: a snapshot, or why there is none.
struct LockView {
  std::string name;
  Result<lock::Snapshot> snapshot;
  redis::Format format = redis::Format::native;
  // `"b" is held by root@web2, which waits for "a"`, if the holder waits for a waiter; printable.
  std::string deadlock{};
  // For a lock that never becomes free: `the key job is a string without an expiry, …`; printable.
  std::string blocking_key{};
};

// The waiters of one lock, in the order of its queue.
struct QueueView {
  std::string name;
  std::vector<lock::Waiter> waiters;
  std::vector<Millis> starts{};  // from expected_starts(); empty: unknown
  std::optional<lock::Closure> closure{};
  std::optional<lock::NewerRules> needs{};
};

// How long the last run took, the later one of the last success and the last failure.
std::optional<Millis> last_duration(const lock::Snapshot& snapshot);

// Whether the last run with a known result failed.
bool last_run_failed(const lock::Snapshot& snapshot);

// The longest time that a holder has held the lock, and that a listed waiter has waited; 0 if there
// is none.
Millis longest_hold(const lock::Snapshot& snapshot);
Millis longest_wait(const lock::Snapshot& snapshot);

// The times after which the first waiters can expect the lock, if each run takes as long as
// `usual`. `present`: the holders of the lock, and whether it is closed.
std::vector<Millis> expected_starts(const lock::Snapshot& present,
                                    const std::vector<lock::Waiter>& waiters, Millis usual);

// Whether the server knows the lock: it is held, or was used within 30 days.
bool is_known(const LockView& lock);

// Whether no run holds the lock, waits for it, or has a part of it, and this rlock may acquire it.
bool is_idle(const LockView& lock);

// A line of the history of one lock or of many: a run with the skips between the end of the
// previous run and its own end, most of which happened while it held the lock; the skips since the
// end of the last run; or a closing.
struct HistoryLine {
  std::string name;
  std::optional<lock::Run> run{};
  std::optional<lock::Skips> skips{};
  std::optional<lock::Closing> closing{};
};
using History = std::vector<HistoryLine>;

// At most `most` runs from `rows`, which the server sends newest first; the closings last.
History to_history(const std::string& name, const lock::HistoryRows& rows, uint64_t most);

// One row for each run and for its skips, sorted by start, newest first. A closing ends when its
// lock was opened.
History by_start(const History& lines);

// Sorts newest first and keeps `most` runs.
void keep_newest(History& lines, uint64_t most);

// How a run ended: `how` is released, expired, broken, lost, max-run, no-guard, no-renewal or
// stopped; code or signal is known only if the command ended and its release reported it.
struct HistoryEnd {
  std::string how{};
  std::optional<int> exit_code{};
  std::optional<int> signal{};
};
HistoryEnd end_of(const lock::Run& run);
HistoryEnd end_of(const lock::Failure& failure);

// `exit 7`, `TERM`, `max-run`: the result of a run, for people.
std::string result_text(const lock::Failure& failure);

// The median duration of the successful runs; nullopt if there are fewer than `least`.
std::optional<Millis> usual_duration(const lock::HistoryRows& rows, size_t least = 1);

}  // namespace rlock::cli
