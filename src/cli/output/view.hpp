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

// By how much the renewal of this lease is overdue: a live holder renews it after each
// timing::renew_interval of its ttl. None where nobody renews it, and for a delay that a busy host
// may have.
std::optional<Millis> overdue(const lock::Holder& holder);

// At a majority of its servers, those that did not answer included.
bool is_closed(const lock::Snapshot& snapshot);

// broken where any holder is, else overdue; cooldown where only cool-downs are left. closed: where
// it would be free otherwise.
LockState state_of(const lock::Snapshot& snapshot);
std::string_view to_string(LockState state);

// The smallest limit of the holders, which decides whether another one is admitted. None for a free
// lock.
std::optional<lock::Limit> limit_of(const lock::Snapshot& snapshot);
std::string_view to_string(lock::Mode mode);

// `native`, `plain` or `redisson`.
std::string_view to_string(redis::Format format);

// The locks that a command is to read: those that are named, and those that fit a pattern.
struct Selection {
  std::vector<lock::LockName> names{};  // each once
  std::vector<std::string> patterns{};

  bool empty() const { return names.empty() && patterns.empty(); }
  // Neither names nor patterns: all locks.
  bool is_listing() const { return names.empty() || !patterns.empty(); }
  // Of a lock of the listing: whether it is asked for, and not by its name already.
  bool lists(const lock::LockName& name) const;
};

// One lock as `status` shows it: a snapshot, or why there is none.
struct LockView {
  std::string name;
  Result<lock::Snapshot> snapshot;
  redis::Format format = redis::Format::native;
  // `"b" is held by root@web2, which waits for "a"`, where the holder waits for a waiter;
  // printable.
  std::string deadlock{};
  // Of a lock that never becomes free: `the key job is a string without an expiry, …`; printable.
  std::string blocking_key{};
};

// The waiters of one lock, in the order of its queue.
struct QueueView {
  std::string name;
  std::vector<lock::Waiter> waiters;
  std::vector<Millis> starts{};  // as of expected_starts(); empty: unknown
  std::optional<lock::Closure> closure{};
};

// The later one of the last success and the last failure: how long that run took.
std::optional<Millis> last_duration(const lock::Snapshot& snapshot);

// Whether the last run whose result is known failed.
bool last_run_failed(const lock::Snapshot& snapshot);

// The longest that a holder has held it, and that one of the listed waiters has waited; 0: nobody.
Millis longest_hold(const lock::Snapshot& snapshot);
Millis longest_wait(const lock::Snapshot& snapshot);

// In how long the first waiters can expect the lock, if each run takes as long as `usual`.
// `present`: the holders of the lock, and whether it is closed.
std::vector<Millis> expected_starts(const lock::Snapshot& present,
                                    const std::vector<lock::Waiter>& waiters, Millis usual);

// Whether the server knows the lock: it is held, or was used within 30 days.
bool is_known(const LockView& lock);

// Whether nobody holds it, waits for it, or has a part of it.
bool is_idle(const LockView& lock);

// A line of the history of one lock or of many: a run with the skips between the end of the run
// before it and its own end, most of which happened while it held the lock; the skips since the end
// of the last run; or a closing.
struct HistoryLine {
  std::string name;
  std::optional<lock::Run> run{};
  std::optional<lock::Skips> skips{};
  std::optional<lock::Closing> closing{};
};
using History = std::vector<HistoryLine>;

// At most `most` runs of `rows`, which the server sends newest first; the closings last.
History to_history(const std::string& name, const lock::HistoryRows& rows, uint64_t most);

// One row for each run and for its skips, sorted by their starts, the newest first.
History by_start(const History& lines);

// Sorts newest first and keeps `most` runs.
void keep_newest(History& lines, uint64_t most);

// How a run ended: `how` is released, expired, broken, lost, max-run, no-guard, no-renewal or
// stopped; code or signal is known only where the command ended and its release reported it.
struct RunEnd {
  std::string how{};
  std::optional<int> exit_code{};
  std::optional<int> signal{};
};
RunEnd end_of(const lock::Run& run);
RunEnd end_of(const lock::Failure& failure);

// `exit 7` of `exit:7`, as people read the result of a run.
std::string result_text(std::string result);

// The median of the successful runs; none where there are fewer than `least`.
std::optional<Millis> usual_duration(const lock::HistoryRows& rows, size_t least = 1);

}  // namespace rlock::cli
