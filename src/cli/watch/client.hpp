#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/dead_holders.hpp"
#include "cli/output/json.hpp"
#include "lock/inspector.hpp"

// What `rlock watch` knows about the locks, and how it asks the server. Callers pass the time as a
// value.
namespace rlock::cli {

// One lock, as it was last read.
struct WatchedLock {
  lock::LockName name;
  bool named;                      // whether the user named it: then it is shown even if it is free
  std::optional<LockView> lock{};  // nullopt: not read so far
  TimePoint at = TimePoint::min();           // when its last reading was requested
  std::optional<TimePoint> free_since{};     // when it was first found free
  std::optional<Millis> usual{};             // the median of its successful runs
  std::optional<lock::Token> usual_token{};  // the run for which `usual` was read
  DeadHolders dead_holders{};
};

class WatchModel {
 public:
  explicit WatchModel(Selection selection);

  // Adds the locks in use on a page of the listing, as far as the user selected them.
  void add(const lock::NamesPage& page);
  // Takes the reading of one lock. Returns what has changed since the previous reading.
  std::optional<Change> see(const std::string& name, LockView lock, TimePoint asked_at);
  // Marks which of the locks that were read with their waiters are part of a deadlock.
  void mark_deadlocks();
  // Takes the history of a lock, for the run that holds it now; `runs` in any order.
  void learn(const std::string& name, const lock::HistoryRows& runs);
  // Drops locks of the listing that have been free for a while.
  std::vector<Change> drop_free(TimePoint now);

  const Selection& selection() const { return selection_; }
  const std::map<std::string, WatchedLock>& locks() const { return locks_; }
  // The locks with a line in the table, in its order.
  std::vector<const WatchedLock*> shown() const;
  const WatchedLock* find(const std::string& name) const;

 private:
  Selection selection_;
  std::map<std::string, WatchedLock> locks_;
};

// Which fields of a lock differ, by their names in status --json; all of them at the first reading.
std::vector<std::string_view> changed_fields(const std::optional<LockView>& before,
                                             const LockView& after);

// What is on the screen, which is therefore read first.
struct OnScreen {
  std::vector<std::string> visible{};   // names with a line on the screen
  std::optional<std::string> opened{};  // the lock whose queue is shown
  uint64_t waiters = 0;                 // how many waiters of that queue
  bool estimates = false;               // whether expected ends are shown
};

// An outage: no server answers, or it refuses.
struct Outage {
  Error why;
  TimePoint since;  // the last answer, or the first try if there was none
  TimePoint next_try;
  int tries = 1;
};

// What is known about the server, or about those of a quorum.
struct ServerState {
  std::optional<TimePoint> last_answer{};
  std::optional<Outage> outage{};
  std::vector<lock::SilentServer> silent{};  // servers that do not answer although a majority does
};

// Asks the server at a low rate: each second one batch of at most 100 locks, and one page of the
// listing or one history; for more than 20 locks three of these. One request is in flight at a
// time. Callers pass the time as a value.
class WatchClient {
 public:
  struct Options {
    Millis limit{5000};  // for one request
    uint64_t holders_page = 128;
    redis::Format format = redis::Format::native;
  };
  WatchClient(lock::LockInspector& inspector, WatchModel& model, Options options)
      : inspector_(inspector), model_(model), options_(options) {}

  // Starts the request that is due, unless one is in flight.
  void start_due(TimePoint now, const OnScreen& screen);
  lock::Request* in_flight() const;
  // When the request in flight is given up, or otherwise when the next one is due.
  TimePoint due() const;
  // Ends the request in flight, which is done or overdue. Returns what has changed.
  std::vector<Change> finish(TimePoint now);

  const ServerState& server() const { return server_; }
  // Whether the listing, and each lock in it, has been read once to the end.
  bool is_complete() const;

 private:
  std::vector<lock::InspectCall> batch_calls(const OnScreen& screen) const;
  lock::InspectCall call_for(const WatchedLock& watched, const OnScreen& screen) const;
  bool start_batch(TimePoint now, const OnScreen& screen);
  void start_other(TimePoint now, const OnScreen& screen);
  const WatchedLock* without_estimate(const OnScreen& screen) const;
  std::vector<Change> finish_batch(TimePoint now);
  void finish_page(TimePoint now);
  void finish_runs(TimePoint now);
  void answered(TimePoint now, std::vector<lock::SilentServer> silent);
  void fail(Error why, TimePoint now);

  lock::LockInspector& inspector_;
  WatchModel& model_;
  Options options_;

  lock::InFlight<lock::Snapshots> batch_{};
  std::vector<std::string> batch_names_{};
  lock::InFlight<lock::NamesPage> page_{};
  lock::InFlight<lock::HistoryRows> runs_{};
  std::string runs_of_{};
  TimePoint asked_at_{};

  std::optional<TimePoint> last_batch_{};
  TimePoint next_batch_ = TimePoint::min();
  TimePoint next_other_ = TimePoint::min();
  bool history_next_ = true;
  std::string cursor_{};
  bool complete_ = false;
  std::optional<TimePoint> first_try_{};
  ServerState server_{};
};

}  // namespace rlock::cli
