#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/deadlock.hpp"
#include "cli/session.hpp"
#include "lock/inspector.hpp"
#include "run/run.hpp"

// How runs that wait for each other are found at the server.
namespace rlock::cli {

// Reads one lock after the other, until `deadline`. Both must outlive it.
ReadLock lock_reader(lock::LockInspector& inspector, lock::Poller& poller, TimePoint deadline);

// Sets LockView::deadlock, within a second.
void mark_deadlocks(Session& session, std::vector<LockView>& locks);

// Chains of looks, one after the other: a queue that moves while it is read may look like a
// deadlock, so that one counts once a second look finds the same.
class RepeatedChain {
 public:
  bool add(std::vector<BlockedHolder> chain) {
    const bool same = !chain.empty() && chain == last_;
    last_ = std::move(chain);
    return same;
  }
  const std::vector<BlockedHolder>& last() const { return last_; }

 private:
  std::vector<BlockedHolder> last_;
};

// The looks of a waiter that holds other locks: over the connection of its wait, between two
// requests.
class DeadlockWatch {
 public:
  // For the wait of `plan`, whose record names the locks that the runs around it hold.
  DeadlockWatch(const run::Plan& plan, Session& session, const run::Signals& signals);

  // From the first reply on, at which `holder` had the lock. The warning, once.
  std::optional<std::string> look(const lock::Holder& holder);
  // Until the next look; max() where there is none to come.
  Millis remaining(TimePoint now) const;

 private:
  lock::LockInspector& inspector_;
  const lock::LockName name_;
  const int signal_fd_;
  const TimePoint deadline_;
  const std::vector<Hold> held_;  // empty: there is nothing to look for
  std::optional<TimePoint> next_;
  RepeatedChain found_;
  bool reported_ = false;
};

}  // namespace rlock::cli
