#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/json.hpp"
#include "cli/output/view.hpp"
#include "util/clock.hpp"

// What `rlock watch` knows of the locks: one look after another. Pure: no time of its own, no
// server.
namespace rlock::cli {

// One lock, as it was last seen.
struct WatchedLock {
  lock::LockName name;
  bool named;                                // by the user: shown even when it is free
  std::optional<LockView> lock{};            // none: not seen yet
  TimePoint at = TimePoint::min();           // when it was asked about
  std::optional<TimePoint> free_since{};     // when it was first seen free
  std::optional<Millis> usual{};             // the median of its successful runs
  std::optional<lock::Token> usual_token{};  // the run for which that was read
};

class WatchModel {
 public:
  explicit WatchModel(Selection selection);

  // Names that a page of the listing has; those that nobody wants are left out.
  void add(const lock::NamesPage& page);
  // A look at one lock. What has changed since the last one.
  std::optional<Change> see(const std::string& name, LockView lock, TimePoint asked_at);
  // `runs` in any order; the history of the run that now holds the lock.
  void learn(const std::string& name, const std::vector<lock::HistoryRow>& runs);
  // Drops locks of the listing that have been free for a while.
  std::vector<Change> drop_free(TimePoint now);

  const Selection& selection() const { return selection_; }
  const std::map<std::string, WatchedLock>& locks() const { return locks_; }
  // Those with a line in the table, in its order.
  std::vector<const WatchedLock*> shown() const;
  const WatchedLock* find(const std::string& name) const;

 private:
  Selection selection_;
  std::map<std::string, WatchedLock> locks_;
};

// Which fields of a lock differ, by their names in status --json; all of them at the first look.
std::vector<std::string_view> changed_fields(const std::optional<LockView>& before,
                                             const LockView& after);

}  // namespace rlock::cli
