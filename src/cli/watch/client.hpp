#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/json.hpp"
#include "lock/inspector.hpp"

// What `rlock watch` knows of the locks, and how it asks the server. Time comes in as a value.
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
  // Which of the locks that were seen, with their waiters, are part of a deadlock.
  void mark_deadlocks();
  // `runs` in any order; the history of the run that now holds the lock.
  void learn(const std::string& name, const lock::HistoryRows& runs);
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

// What is on the screen, and therefore asked first.
struct OnScreen {
  std::vector<std::string> visible{};   // names with a line
  std::optional<std::string> opened{};  // the lock whose queue is shown
  uint64_t waiters = 0;                 // how many of that queue
  bool estimates = false;               // whether expected ends are shown
};

// No server answers, or it refuses.
struct Outage {
  Error why;
  TimePoint since;  // the last answer; the first try where there was none
  TimePoint next_try;
  int tries = 1;
};

// What is known of the server, or of those of a quorum.
struct ServerState {
  std::optional<TimePoint> last_answer{};
  std::optional<Outage> outage{};
  std::vector<lock::SilentServer> silent{};  // though a majority answers
};

// Asks the server, rarely: each second one batch of at most 100 locks, and one page of the listing
// or one history; beyond 20 locks three of these. One request in flight. Time comes in as a value.
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
  // When the request in flight is given up, or else when the next one is due.
  TimePoint due() const;
  // Ends the request in flight, which is done or overdue. What has changed.
  std::vector<Change> finish(TimePoint now);

  const ServerState& server() const { return server_; }
  // Whether the listing has been read to its end once, and each lock of it.
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
