#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/deadlock.hpp"
#include "cli/session.hpp"
#include "lock/inspector.hpp"
#include "run/plan.hpp"
#include "run/signals.hpp"

// Finds runs that wait for each other, by asking the server.
namespace rlock::cli {

// Reads one lock after the other, until `deadline`. Both arguments must outlive it.
ReadLock lock_reader(lock::LockInspector& inspector, lock::Poller& poller, TimePoint deadline);

// Sets LockView::deadlock, within a second.
void mark_deadlocks(Session& session, std::vector<LockView>& locks);

// A chain that consecutive checks found. A queue that moves while it is read may look like a
// deadlock, so a deadlock counts only if a second check finds the same chain.
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

// The checks of a waiter that holds other locks, over the connection of its wait, between two
// requests.
class DeadlockWatch {
 public:
  // For the wait of `plan`, whose record names the locks that its outer runs hold.
  DeadlockWatch(const run::Plan& plan, Session& session, const run::Signals& signals);

  // Call from the first reply on; `holder` is the holder in that reply. Returns the warning, once.
  std::optional<std::string> look(const lock::Holder& holder);
  // Time until the next check; max() if there is none.
  Millis remaining(TimePoint now) const;

 private:
  lock::LockInspector& inspector_;
  const lock::LockName name_;
  const int signal_fd_;
  const TimePoint deadline_;
  const std::vector<Hold> held_;  // empty: there is nothing to check
  const std::string own_process_;
  const std::string lock_options_;
  std::optional<TimePoint> next_;
  RepeatedChain found_;
  bool reported_ = false;
};

}  // namespace rlock::cli
