// Runs in rlock, on the main thread.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lock/inspector.hpp"
#include "lock/lease.hpp"
#include "lock/timing.hpp"
#include "lock/wait.hpp"
#include "run/run_end.hpp"
#include "run/signals.hpp"

namespace rlock::run {

class OlderChildren;
class SharedState;

// The main job: acquires the lock, runs the command under guard and renewal, and releases the lock.
// [docs/SUPERVISION.md]

enum class OnLost { terminate, ignore };

// Whether the command has its own pid namespace, which ends with its guard. as_user: in a user
// namespace too, which needs no CAP_SYS_ADMIN, but has no other users.
enum class Contain { no, with_rights, as_user };

// Whether `how` works on this host; ErrorKind::system says why not.
Status try_to_contain(Contain how);

// When the lock may be released: when the command has exited, or when all its descendants have
// exited, too.
enum class ReleaseAfter { command, descendants };

// A held lock: its owner, how it is held, and since when. A nested run has the owner and token of
// the outer run, and its own entry.
struct HeldLock {
  lock::Owner owner;
  lock::Token token;
  lock::Limit limit = lock::Limit::exclusive();
  Millis min_hold{0};
  lock::Entry entry = lock::Entry::outer();
  uint64_t slot = 0;       // as granted; 0: the lock has no slots
  TimePoint granted_at{};  // the lease counts from here
  TimePoint asked_at{};    // when the acquisition began

  bool nested() const { return entry != lock::Entry::outer(); }
  // The length of its lease, if the plan asks for `ttl`.
  Millis lease(Millis ttl) const {
    return nested() ? std::min(ttl, timing::kLongestNestedLease) : ttl;
  }
  // The time from the first request until the granted request.
  Millis waited() const {
    return nested() ? Millis(0) : std::chrono::duration_cast<Millis>(granted_at - asked_at);
  }
};

// An outer run that, according to the environment, holds the lock.
struct OuterRun {
  HeldLock held_lock;
  // Whether to restore a lease that the server has lost: only while that run lives, because an old
  // token must not come back.
  bool may_put_back = false;
  // How long the outer run has to restore its lease itself, if the server has lost it.
  Millis put_back_grace{0};
};

struct Plan {
  lock::AcquireCall claim;  // name, owner, limit, ttl, record, queueing
  lock::WaitLimits limits;
  std::vector<std::string> argv;  // the command, executed directly: argv[0] is looked up in PATH
  // Returns the entries to add to the command's inherited environment: `NAME=value`; `NAME` without
  // a value removes the variable. The names are the same for each lock.
  std::function<std::vector<std::string>(const HeldLock&)> environment;
  // The claim's record while processes that rlock cannot stop keep the lock; null: unchanged.
  std::function<std::string(const std::string& why)> record_ending{};
  // Tried in turn: if one of them holds the lock, this run enters it and does not wait.
  std::vector<OuterRun> outer_runs{};
  Millis kill_after{5'000};
  std::optional<Millis> max_run{};  // counted from the start of the command, not of the wait
  // The time from a TERM, INT or QUIT that was passed on until KILL for the remaining processes.
  std::optional<Millis> stop_after{};
  OnLost on_lost = OnLost::terminate;
  ReleaseAfter until = ReleaseAfter::command;
  lock::Watchdog watchdog = lock::Watchdog::renew;
  Contain contain = Contain::no;
  bool unlocked = false;  // no lock is held: no lease is watched
};

enum class EventKind {
  enqueued,
  acquired,
  entered,   // instead of acquired: an outer run holds the lock
  unlocked,  // instead of acquired: the command runs without the lock
  renewed,
  renew_failed,
  lost,
  terminating,
  killed,
  exited,
  released
};
struct Event {
  EventKind kind;
  TimePoint at;                        // CLOCK_BOOTTIME
  lock::Token token;                   // 0 until acquired
  std::string detail;                  // for people: why or how; may be hostile text
  std::optional<lock::Owner> owner{};  // with `acquired` and `entered`: the owner of this run
  std::optional<CommandEnd> end{};     // with `exited`
};

// The command is still running `after` rlock passed on a request to stop.
struct Unheeded {
  int signal = 0;
  Millis after{0};
  pid_t command = 0;  // 0: the command has exited, but rlock waits for its descendants
  std::optional<Millis> kill_in{};  // until rlock kills it (--stop-after); nullopt: it does not
};

// Called from the main thread and from the renewal thread; implementations lock for themselves.
class Observer : public lock::WaitObserver {
 public:
  virtual void event(const Event&) {}
  // The lock is granted, but too few replicas have confirmed it: the command starts when they do.
  virtual void awaiting_replicas(const Error& /*why*/) {}
  // ^Z is about to stop rlock and its command. rlock stops the command for good after `left` unless
  // both are resumed.
  virtual void stopping(Millis /*left*/) {}
  // Renewals have failed for a while, most recently for this reason; `left` until rlock gives up
  // the lease. Called once for each outage; renewed_again() ends it.
  virtual void renewals_fail(const Error& /*why*/, Millis /*left*/, bool /*ends_command*/) {}
  virtual void renewed_again(Millis /*after*/) {}
  // rlock cannot stop these processes, and renews the lock as long as they live. Called repeatedly.
  virtual void cannot_end(const std::vector<std::string>& /*survivors*/) {}
  // A request to stop has had no effect so far.
  virtual void unheeded(const Unheeded&) {}
  // A TERM or INT came while rlock tries to release the lock; a second one ends the tries.
  virtual void still_releasing() {}
  // These processes ignored a hangup and keep running without the lock.
  virtual void exempted(const std::vector<std::string>& /*processes*/) {}
};

// How a run reaches the server.
struct Connections {
  lock::LockStore& store;              // made the first contact
  lock::MakeStore make_store;          // for the renewal thread
  lock::MakeInspector make_inspector;  // for a nested run; unused without plan.outer_runs
};

// One run and everything that it needs.
struct RunContext {
  const Plan& plan;
  const Connections& connections;
  Observer& observer;
  Signals& signals;
  SharedState& state;
  const OlderChildren& older_children;
};

// Runs plan.argv under the lock. `signals` was taken before, so signals are blocked. Leaves no
// process, thread or descriptor of its own behind.
RunOutcome hold_and_run(const Plan& plan, const Connections& connections, Observer& observer,
                        Signals& signals);

using Acquisition = std::variant<HeldLock, RunOutcome>;

// Waits for plan.claim within plan.limits. Returns the lock, with at least half of its lease left,
// or the result of the wait; then everything was cancelled as far as a server answered. If the
// descriptor `call_off` is readable or hung up, the lock is no longer wanted; -1 for none.
Acquisition acquire_lock(const Plan& plan, lock::LockStore& store, Observer& observer,
                         Signals& signals, int call_off);

// The lock as it was granted to `claim`.
HeldLock held_lock_of(const lock::AcquireCall& claim, const lock::Acquired& acquired);

// The settings for a lease of `ttl` that `replicas` replicas confirm.
lock::LeaseMonitor::Settings lease_settings(Millis ttl, uint64_t replicas, Millis kill_after,
                                            lock::Watchdog watchdog);

// The time from which the lease counts, or why the command must not run.
using Confirmed = std::variant<TimePoint, lock::Lost, Error>;

// Renews a grant that too few replicas have confirmed (`unconfirmed` says why) until they confirm a
// renewal, within the limits of the wait. A signal at the poller's interrupt ends this, too.
Confirmed await_replicas(const Plan& plan, const HeldLock& held_lock, Error unconfirmed,
                         lock::LockStore& store, lock::Poller& poller);

// Call just before the command starts. Returns the time from which the lease counts, or how it was
// lost. A suspended waiter may wake up with a lease that is nearly over: if less than half of the
// ttl is left, the lease is renewed first. A signal at the poller's interrupt ends the try.
std::variant<TimePoint, LeaseEnd> fresh_lease(const Plan& plan, const HeldLock& held_lock,
                                              lock::LockStore& store, lock::Poller& poller);

// Decides whether the attempts to release end; asked whenever `fd` is readable (-1: never).
struct ReleaseInterrupt {
  int fd = -1;
  std::function<bool()> ends{};
};

// Releases the lock, retrying over fresh connections until `until` or the interrupt. If no server
// confirmed it, returns the error of the last attempt that was not interrupted. call.once->asked
// counts from the call of this function.
Result<lock::ReleaseReply> release_until(lock::LockStore& store, lock::ReleaseCall call,
                                         TimePoint until, const ReleaseInterrupt& interrupt = {});

// The request that renews the held lock that `claim` asked for, and restores a lease that the
// server has lost; `lease_end` as in lock::PutBack.
lock::RenewCall renew_call(const lock::Claim& claim, const HeldLock& held_lock,
                           std::optional<TimePoint> lease_end);

// Re-entry, in reentry.cpp. Lost: the server does not know the outer run as a holder.
using EnterResult = std::variant<HeldLock, lock::Lost, lock::Upgrade, lock::Interrupted>;

// Enters the lock under the first of plan.outer_runs that holds it. Lost: none of them does, and
// the lock is to be acquired as usual. Waits only for an outer run to restore its lease, for
// OuterRun::put_back_grace. Returns an error if no server answers within plan.limits. Unless it
// returns a HeldLock, it has released its entry as far as a server answered.
Result<EnterResult> enter_outer_run(const Plan& plan, const Connections& connections,
                                    lock::Poller& poller, lock::WaitObserver& observer);

// Releases the entry with one short try; otherwise the entry expires by itself.
void leave_outer_run(const Plan& plan, const HeldLock& held_lock, lock::LockStore& store,
                     lock::Poller& poller);

}  // namespace rlock::run
