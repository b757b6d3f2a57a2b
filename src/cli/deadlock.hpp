#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/record.hpp"
#include "cli/session.hpp"
#include "lock/inspector.hpp"
#include "run/run.hpp"

// Runs that wait for each other: each waits for a lock that it takes inside of one that the next
// one waits for. Only exclusive locks of one server are looked at.
namespace rlock::cli {

// Somebody who holds `hold`, and waits for `waits_for` inside of it.
struct BlockedHolder {
  Hold hold;
  std::string who;  // printable
  std::string waits_for;
  std::string waiter;  // its owner there

  bool operator==(const BlockedHolder&) const = default;
};

// How the holder of `wanted` waits, perhaps for others who wait, for one of `held`: from the holder
// of `wanted` on. Empty: it does not, or nobody could say so by `deadline`.
std::vector<BlockedHolder> find_deadlock(lock::LockInspector& inspector, lock::Poller& poller,
                                         const Hold& wanted, const std::vector<Hold>& held,
                                         TimePoint deadline);

// `"b" is held by root@web2, which waits for "a"`
std::string deadlock_phrase(const std::vector<BlockedHolder>& chain);

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
  // For the wait of `plan`, whose record then names the locks that the runs around it hold.
  DeadlockWatch(run::Plan& plan, Session& session, const run::Signals& signals);

  // From the first reply on, at which `holder` had the lock. The warning, once.
  std::optional<std::string> look(const lock::Holder& holder);
  // Until the next look; max() where there is none to come.
  Millis remaining(TimePoint now) const;

 private:
  lock::LockInspector& inspector_;
  const lock::LockName name_;
  const int signal_fd_;
  const TimePoint deadline_;
  std::vector<Hold> held_;  // empty: there is nothing to look for
  std::optional<TimePoint> next_;
  RepeatedChain found_;
  bool reported_ = false;
};

}  // namespace rlock::cli
