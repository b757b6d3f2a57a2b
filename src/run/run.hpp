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

// The main job: acquire, run the command under guard and renewal, release. [docs/SUPERVISION.md]

enum class OnLost { terminate, ignore };

// Whether the command is in a pid namespace of its own, which ends with its guard. as_user: in a
// user namespace, too, which needs no CAP_SYS_ADMIN, but has no other users.
enum class Contain { no, with_rights, as_user };

// Whether that works on this host; ErrorKind::system says why not.
Status try_to_contain(Contain how);

// When the lock may be released: when the command has ended, or all that it started has, too.
enum class ReleaseAfter { command, descendants };

// A lock that is held: as whom, how, and since when. A nested run has owner and token of the run
// around it, and an entry of its own.
struct HeldLock {
  lock::Owner owner;
  lock::Token token;
  lock::Limit limit = lock::Limit::exclusive();
  Millis min_hold{0};
  lock::Entry entry = lock::Entry::outer();
  uint64_t slot = 0;       // as granted; 0: the lock has no slots
  TimePoint granted_at{};  // from where the lease counts
  TimePoint asked_at{};    // when the acquisition began

  bool nested() const { return entry != lock::Entry::outer(); }
  // How long its lease is, where the plan asks for `ttl`.
  Millis lease(Millis ttl) const {
    return nested() ? std::min(ttl, timing::kLongestNestedLease) : ttl;
  }
  // From the first request until the granted request.
  Millis waited() const {
    return nested() ? Millis(0) : std::chrono::duration_cast<Millis>(granted_at - asked_at);
  }
};

// An outer run that, by this environment, holds the lock.
struct OuterRun {
  HeldLock held_lock;
  // Whether a lease that the server has lost is put back: only while that run lives, since an old
  // token must not come back.
  bool may_put_back = false;
  // How long the outer run has to put its lease back itself, if the server has lost it.
  Millis put_back_grace{0};
};

struct Plan {
  lock::AcquireCall claim;  // name, owner, limit, ttl, record, queueing
  lock::WaitLimits limits;
  std::vector<std::string> argv;  // the command, executed directly: argv[0] is looked up in PATH
  // Is added to the command's inherited environment, `NAME=value`; `NAME` alone is taken out. The
  // names are the same for each lock.
  std::function<std::vector<std::string>(const HeldLock&)> environment;
  // The claim's record while processes that cannot be ended keep the lock; none: unchanged.
  std::function<std::string(const std::string& why)> record_ending{};
  // They are tried in turn: if one holds the lock, this run enters it and does not wait.
  std::vector<OuterRun> outer_runs{};
  Millis kill_after{5'000};
  std::optional<Millis> max_run{};  // counted from the start of the command, not of the wait
  // From a TERM, INT or QUIT that was passed on to the KILL of what is left then.
  std::optional<Millis> stop_after{};
  OnLost on_lost = OnLost::terminate;
  ReleaseAfter until = ReleaseAfter::command;
  lock::Watchdog watchdog = lock::Watchdog::renew;
  Contain contain = Contain::no;
  bool unlocked = false;  // no lock is held: nothing is kept for anybody
};

enum class EventKind {
  enqueued,
  acquired,
  entered,   // instead of acquired: a run around this one holds the lock
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
  std::string detail;                  // for people: why, how; may be hostile text
  std::optional<lock::Owner> owner{};  // with `acquired` and `entered`: the owner of this run
  std::optional<CommandEnd> end{};     // with `exited`
};

// The command is still running `after` a request to stop was passed on.
struct Unheeded {
  int signal = 0;
  Millis after{0};
  pid_t command = 0;  // 0: it has exited, and descendants, for which rlock waits, keep running
  std::optional<Millis> kill_in{};  // until rlock kills it (--stop-after); nullopt: it does not
};

// Called from the main thread and from the renewal thread: implementations lock for themselves.
class Observer : public lock::WaitObserver {
 public:
  virtual void event(const Event&) {}
  // The lock is granted, but too few replicas have confirmed it: nothing starts before they do.
  virtual void awaiting_replicas(const Error& /*why*/) {}
  // A ^Z is about to stop rlock with its command, which is ended after `left` unless both are
  // resumed.
  virtual void stopping(Millis /*left*/) {}
  // Renewals have failed for a while, at last for this reason; `left` until the lease is given up.
  // Once an outage; renewed_again() ends it.
  virtual void renewals_fail(const Error& /*why*/, Millis /*left*/, bool /*ends_command*/) {}
  virtual void renewed_again(Millis /*after*/) {}
  // These processes cannot be ended: the lock is renewed for as long as they live. Repeated.
  virtual void cannot_end(const std::vector<std::string>& /*survivors*/) {}
  // A request to stop has had no effect so far.
  virtual void unheeded(const Unheeded&) {}
  // A TERM or INT came while the release is tried; a second one ends that.
  virtual void still_releasing() {}
  // After a hangup these keep running without the lock, because they ignore it.
  virtual void exempted(const std::vector<std::string>& /*processes*/) {}
};

// How a run reaches the server.
struct Connections {
  lock::LockStore& store;              // made the first contact
  lock::MakeStore make_store;          // for the renewal thread
  lock::MakeInspector make_inspector;  // for a nested run; unused without plan.outer_runs
};

// One run, and all that it needs.
struct RunContext {
  const Plan& plan;
  const Connections& connections;
  Observer& observer;
  Signals& signals;
  SharedState& state;
  const OlderChildren& older_children;
};

// Runs plan.argv under the lock. Signals were blocked by `signals` before. Leaves no process,
// thread or descriptor of its own behind.
RunOutcome hold_and_run(const Plan& plan, const Connections& connections, Observer& observer,
                        Signals& signals);

using Acquisition = std::variant<HeldLock, RunOutcome>;

// Waits for plan.claim as plan.limits say. Either the lock, with at least half of its lease left,
// or the result of the wait; then everything was cancelled as far as a server answered. Once the
// descriptor `call_off` is readable or hung up, nobody wants the lock any more; -1 for none.
Acquisition acquire_lock(const Plan& plan, lock::LockStore& store, Observer& observer,
                         Signals& signals, int call_off);

// The lock as it was granted to `claim`.
HeldLock held_lock_of(const lock::AcquireCall& claim, const lock::Acquired& acquired);

// How long a lease of `ttl`, which so many replicas confirm, is counted on.
lock::LeaseMonitor::Settings lease_settings(Millis ttl, uint64_t replicas, Millis kill_after,
                                            lock::Watchdog watchdog);

// From where the lease counts; or why nothing may run.
using Confirmed = std::variant<TimePoint, lock::Lost, Error>;

// Renews a grant that too few replicas have confirmed (`unconfirmed` says why) until they confirm a
// renewal, for as long as the wait may last. A signal at the poller's interrupt ends that, too.
Confirmed await_replicas(const Plan& plan, const HeldLock& held_lock, Error unconfirmed,
                         lock::LockStore& store, lock::Poller& poller);

// Just before the command starts, from where the lease counts; or how it was lost. A waiter that
// slept may come back to a lease that is nearly over: with less than half the ttl left it is
// renewed first. A signal at the poller's interrupt ends the try.
std::variant<TimePoint, LeaseEnd> fresh_lease(const Plan& plan, const HeldLock& held_lock,
                                              lock::LockStore& store, lock::Poller& poller);

// Whether the attempts to release are to end, asked whenever `fd` is readable (-1: never).
struct ReleaseInterrupt {
  int fd = -1;
  std::function<bool()> ends{};
};

// Releases, retrying over fresh connections until `until` or the interrupt. If no server confirmed
// it, returns the error of the last attempt that was not cut short. call.once->asked is as old as
// the call of this function.
Result<lock::ReleaseReply> release_until(lock::LockStore& store, lock::ReleaseCall call,
                                         TimePoint until, const ReleaseInterrupt& interrupt = {});

// The request that renews a use of the lock that `claim` asked for, and restores a lease that the
// server has lost; `lease_end` as of lock::PutBack.
lock::RenewCall renew_call(const lock::Claim& claim, const HeldLock& held_lock,
                           std::optional<TimePoint> lease_end);

// Re-entry, in reentry.cpp. Lost: the server does not know the outer run as a holder.
using EnterResult = std::variant<HeldLock, lock::Lost, lock::Upgrade, lock::Interrupted>;

// Enters the lock under the first of plan.outer_runs that holds it; Lost: none does, and the lock
// is to be acquired like any other. Waits only for an outer run to put its lease back, for
// OuterRun::put_back_grace. An error when no server answers for as long as plan.limits say.
// Unless it returns a HeldLock it has released its entry as far as a server answered.
Result<EnterResult> enter_outer_run(const Plan& plan, const Connections& connections,
                                    lock::Poller& poller, lock::WaitObserver& observer);

// Releases the entry; one short try, after which it ends by itself.
void leave_outer_run(const Plan& plan, const HeldLock& held_lock, lock::LockStore& store,
                     lock::Poller& poller);

}  // namespace rlock::run
