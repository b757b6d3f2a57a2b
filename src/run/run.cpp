// Runs in rlock, on the main thread.

#include "run/run.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lock/timing.hpp"
#include "run/guard.hpp"
#include "run/process_tree.hpp"
#include "run/reentry.hpp"
#include "run/supervisor.hpp"
#include "util/random.hpp"

namespace rlock::run {
namespace {

// Only if the command exited by itself: if rlock stopped it, the cause of that is reported.
std::optional<LeaseEnd> loss_at_release(const lock::ReleaseReply& reply) {
  switch (reply.ending) {
    case lock::OwnerEnd::forced:
      return LeaseEnd{lock::Lost{lock::LostHow::forced, {}, reply.note}, {}};
    case lock::OwnerEnd::expired:
      return LeaseEnd{lock::Lost{lock::LostHow::expired, {}, reply.note}, {}};
    case lock::OwnerEnd::forgotten: {
      LeaseEnd end{lock::Lost{lock::LostHow::deleted, {}, {}}, {}};
      end.reported->data_lost = true;
      return end;
    }
    case lock::OwnerEnd::unknown:
      return LeaseEnd{lock::Lost{lock::LostHow::gone, {}, {}}, {}};
    default:
      return std::nullopt;
  }
}

// If an operator breaks the lock, the outermost run stops everything inside with a signal, which
// may arrive before the news of the break.
bool ended_by_outer_run(const lock::HeldLock& held_lock, const RunEnd& end) {
  return held_lock.nested() && end.lost && end.lost->reported &&
         end.lost->reported->how == lock::LostHow::forced &&
         std::holds_alternative<Signaled>(end.end);
}

// Adds the result of the release.
void complete(RunEnd& end, const lock::HeldLock& held_lock,
              const Result<lock::ReleaseReply>& released) {
  if (!released) end.unreleased = released.error();
  // No run ends the entry of another: a nested run may be on another host.
  if (released && end.left_nothing && !held_lock.nested()) end.kept_for = released->left;
  if (cause_of(end) != RunCause::command) return;
  if (!end.lost && released) end.lost = loss_at_release(*released);
  if (ended_by_outer_run(held_lock, end)) end.ended_for = EndCause::lease;
}

// The result for the history, without blanks.
std::string history_result(const Result<RunEnd>& end) {
  if (!end) return "-";
  const std::string_view word = row_of(cause_of(*end)).history;
  if (!word.empty()) return std::string(word);
  if (end->exec_error != 0) return "exit:" + std::to_string(exec_exit_code(end->exec_error));
  if (const auto* exited = std::get_if<Exited>(&end->end)) {
    if (exited->code == 0 && end->asked_to_stop) return "stopped";
    return "exit:" + std::to_string(exited->code);
  }
  return "signal:" + std::to_string(std::get<Signaled>(end->end).signal);
}

// An operator broke the lock, or another process released it; in both cases no other run need have
// held it since.
bool taken_away(const LeaseEnd& lost) {
  return lost.reported && (lost.reported->how == lock::LostHow::forced ||
                           lost.reported->how == lock::LostHow::released);
}

// Whether the work was done: the command exited by itself, and was not asked to stop half-way. If
// the lease was lost, the server knows whether another run may have done the work in the meantime.
bool succeeded(const RunEnd& end) {
  const auto* exited = std::get_if<Exited>(&end.end);
  return end.started && exited != nullptr && exited->code == 0 && !end.ended_for &&
         !end.asked_to_stop && !(end.lost && taken_away(*end.lost));
}

// nullopt for a run that did nothing, and inside an outer run, which reports for itself.
std::optional<lock::OnceResult> once_result(const RunContext& context,
                                            const lock::HeldLock& held_lock,
                                            const Result<RunEnd>& end) {
  const auto& once = context.plan.claim.once;
  if (!once || held_lock.nested() || !end || !end->started) return std::nullopt;
  return lock::OnceResult{*once,
                          std::chrono::duration_cast<Millis>(BootClock::now() - held_lock.asked_at),
                          held_lock.token, succeeded(*end), held_lock.waited()};
}

// What is left of the lease for the release, while a caller waits for the command's exit code. If a
// success is not recorded, its work is done again.
Nanos release_time(const lock::ReleaseCall& call, Nanos left) {
  return call.once ? std::max<Nanos>(left, timing::kShortestRelease)
                   : std::clamp<Nanos>(left, timing::kShortestRelease, timing::kLongestRelease);
}

Result<lock::ReleaseReply> release(const RunContext& context, const lock::HeldLock& held_lock,
                                   const Result<RunEnd>& end, TimePoint deadline) {
  const bool used = end && end->started;
  lock::ReleaseCall call{context.plan.claim.name,
                         held_lock.owner,
                         held_lock.entry,
                         history_result(end),
                         used ? lock::ReleaseHow::released : lock::ReleaseHow::unused,
                         once_result(context, held_lock, end),
                         context.plan.claim.replicas};
  if (used && !held_lock.nested()) {
    call.run = held_lock.token;
    call.record = context.plan.claim.record;
  }
  const TimePoint now = BootClock::now();
  std::optional<TimePoint> first;  // of the requests to stop
  auto ends = [&] {
    while (const int signal = context.signals.next_number()) {
      if (signal != SIGTERM && signal != SIGINT) continue;
      if (first && BootClock::now() >= *first + timing::kOneRequest) return true;
      if (!std::exchange(first, first.value_or(BootClock::now()))) {
        context.observer.on(StillReleasing{});
      }
    }
    return false;
  };
  auto reply =
      release_until(context.connections.store, call, now + release_time(call, deadline - now),
                    {context.signals.fd(), ends});
  context.observer.on(Event{EventKind::released, BootClock::now(), held_lock.token,
                            reply ? std::string() : "not confirmed: " + reply.error().text});
  return reply;
}

// Whether a success that should be recorded was recorded.
Recording recording_of(const RunContext& context, const lock::HeldLock& held_lock,
                       const RunEnd& end,
                       const std::optional<Result<lock::ReleaseReply>>& released) {
  const auto* exited = std::get_if<Exited>(&end.end);
  const bool ended_well = end.started && exited != nullptr && exited->code == 0;
  const bool applies = context.plan.claim.once && !held_lock.nested();
  if (!applies || !ended_well || end.ended_for) return Recording::none;
  if (end.asked_to_stop) return Recording::stopped;
  if (!released || !*released) return Recording::unconfirmed;
  switch ((*released)->marked) {
    case lock::Marked::yes:
      return Recording::recorded;
    case lock::Marked::no_room:
      return Recording::pushed_out_another;
    case lock::Marked::no:
      break;
  }
  return Recording::unconfirmed;
}

// After `unshare -p` the first child is PID 1 of the new namespace. Once it has exited, no process
// can start there any more, so the first child must be one that stays.
bool guard_may_be_discarded() {
  struct stat own {};
  struct stat for_children {};
  return stat("/proc/self/ns/pid", &own) == 0 &&
         stat("/proc/self/ns/pid_for_children", &for_children) == 0 &&
         own.st_dev == for_children.st_dev && own.st_ino == for_children.st_ino;
}

// The guard, forked while the first acquire is on its way. [docs/SUPERVISION.md, "The early guard"]
class EarlyGuard {
 public:
  explicit EarlyGuard(const RunContext& context) : context_(context) {}

  // Does not report a failure, because rlock tries again after the grant.
  void prepare() {
    const bool contained = context_.plan.contain != Contain::no;
    if (!guard_ && !contained && guard_may_be_discarded()) (void)fork();
  }
  // Without the environment of the grant, which follows with Guard::start().
  Status fork() {
    const lock::AcquireCall& claim = context_.plan.claim;
    TRY(guard_, Guard::fork(context_, context_.plan.environment({claim.owner, {}, claim.limit})));
    return Done{};
  }
  // Kills and reaps the guard.
  void discard() { guard_.reset(); }
  // Null if the guard was not forked.
  std::unique_ptr<Guard> take() { return std::move(guard_); }

 private:
  const RunContext& context_;
  std::unique_ptr<Guard> guard_;
};

// A failed command may have left its workers by accident: a wrapper can hide that a signal killed
// its child.
void report_leftovers(const RunContext& context, const RunEnd& end) {
  const auto* exited = std::get_if<Exited>(&end.end);
  if (exited == nullptr || !end.survivors.empty() || context.state.exempted.size() > 0) return;
  const auto processes = describe_alive(context.state.leftovers);
  if (!processes.empty()) context.observer.on(Leftovers{exited->code, processes});
}

// Runs guard, command and renewal, and then releases the lock. It releases the lock on every way
// out, unless processes of the command are left that rlock could not stop: then the lock lasts as
// long as its lease. `guard`: a guard that was forked before the grant, or null.
RunOutcome run_held(const RunContext& context, const lock::HeldLock& held_lock,
                    std::unique_ptr<Guard> guard) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // If a lost lease is to be ignored, the guard reacts only to the death of rlock.
  SharedState* guard_state = context.plan.on_lost == OnLost::terminate ? &context.state : nullptr;
  SharedLease lease(lease_settings(context.plan, held_lock), held_lock.granted_at, guard_state);
  // The guard outlives the release, so that the next waiter need not wait for the guard's exit.
  auto end = supervise(context, held_lock, lease, guard);
  if (end && end->lost && context.plan.watchdog == lock::Watchdog::renew) {
    end->lost->survives = lock::survived_outage(lease_settings(context.plan, held_lock));
  }
  std::optional<Result<lock::ReleaseReply>> released;
  const bool all_gone = !end || end->survivors.empty();
  if (all_gone) released = release(context, held_lock, end, lease.view().deadline);
  if (!end) return std::move(end).error();
  end->recording = recording_of(context, held_lock, *end, released);
  if (released) complete(*end, held_lock, *released);
  report_leftovers(context, *end);
  return *std::move(end);
}

// The end of a run whose lease expired before its command started.
RunEnd never_started(LeaseEnd lost) {
  return {.ended_for = EndCause::lease, .lost = std::move(lost)};
}

// Passes the wait on to the observer, and reports once that a wait has begun.
class WaitEvents final : public lock::WaitObserver {
 public:
  WaitEvents(Observer& observer, EarlyGuard* early) : observer_(observer), early_(early) {}
  void awaiting_reply() override {
    if (early_ != nullptr) early_->prepare();
  }
  void not_granted() override {
    if (early_ != nullptr) early_->discard();
  }
  void queued(const lock::Queued& place) override {
    if (!reported_) {
      observer_.on(Event{EventKind::enqueued, BootClock::now(), {}, {}});
      reported_ = true;
    }
    observer_.queued(place);
  }
  Millis ask_again_after() const override { return observer_.ask_again_after(); }
  void transient_error(const Error& error) override { observer_.transient_error(error); }
  void no_server(const Error& why, TimePoint until) override { observer_.no_server(why, until); }
  void must_poll(const Error& error) override { observer_.must_poll(error); }
  Millis tick_every() const override { return observer_.tick_every(); }
  void tick() override { observer_.tick(); }

 private:
  Observer& observer_;
  EarlyGuard* early_;
  bool reported_ = false;
};

bool readable(int fd) {
  pollfd polled{fd, POLLIN, 0};
  return fd >= 0 && poll(&polled, 1, 0) > 0;
}

// The outcome of a wait that neither acquired the lock nor was interrupted.
RunOutcome not_acquired(lock::WaitResult result) {
  if (auto* late = std::get_if<lock::TimedOut>(&result)) return std::move(*late);
  return std::get<lock::Refused>(std::move(result));
}

RunOutcome without_replicas(Confirmed why) {
  if (auto* lost = std::get_if<lock::Lost>(&why)) return never_started({std::move(*lost), {}});
  return std::get<Error>(std::move(why));
}

// nullopt: no outer run holds the lock.
std::optional<Acquisition> enter_held_lock(const Plan& plan, const Connections& connections,
                                           Observer& observer, Signals& signals) {
  lock::SystemPoller poller(signals.fd());
  auto result = enter_outer_run(plan, connections, poller, observer);
  if (!result) return RunOutcome(std::move(result).error());
  if (std::holds_alternative<lock::Lost>(*result)) return std::nullopt;
  if (auto* upgrade = std::get_if<lock::Upgrade>(&*result)) return RunOutcome(*upgrade);
  int signal = signals.next_number();
  auto* entered = std::get_if<lock::HeldLock>(&*result);
  if (signal != 0 && entered != nullptr) leave_outer_run(plan, *entered, connections.store, poller);
  if (signal != 0 || entered == nullptr) return RunOutcome(WaitSignaled{signal});
  if (plan.claim.once) {
    leave_outer_run(plan, *entered, connections.store, poller);
    return RunOutcome(Error{ErrorKind::usage,
                            "--once, --once-per and --once-within cannot be used inside a run that "
                            "holds the lock: give the option to the outer run"});
  }
  observer.on(Event{EventKind::entered, BootClock::now(), entered->token, {}, entered->owner});
  return std::move(*entered);
}

// `early`, if any, keeps its guard only if the lock was granted immediately.
Acquisition acquire_with(EarlyGuard* early, const Plan& plan, lock::LockStore& store,
                         Observer& observer, Signals& signals, int call_off) {
  lock::SystemPoller poller(signals.fd(), call_off);
  util::SystemRandom random;
  WaitEvents events(observer, early);
  lock::WaitLoop wait(store, poller, random, events);
  auto waited = wait.acquire(plan.claim, plan.limits);
  if (!waited) return RunOutcome(std::move(waited).error());
  if (std::holds_alternative<lock::Interrupted>(*waited)) {
    return RunOutcome(WaitSignaled{signals.next_number()});
  }
  auto* acquired = std::get_if<lock::HeldLock>(&*waited);
  if (acquired == nullptr) return not_acquired(std::move(*waited));
  lock::HeldLock held_lock = std::move(*acquired);
  auto cancel_grant = [&](int signal, RunOutcome why) {
    events.not_granted();
    // If no server answers, the lease expires by itself, and nothing has run under it.
    [[maybe_unused]] auto cancel_reply = wait.cancel({plan.claim.name, held_lock.owner},
                                                     poller.now() + timing::kUnusedGrantCancelTime);
    const bool unwanted = signal != 0 || readable(call_off);
    return unwanted ? RunOutcome(WaitSignaled{signal}) : std::move(why);
  };
  if (auto why = std::exchange(held_lock.unconfirmed, std::nullopt)) {
    if (plan.claim.queueing == lock::Queueing::wait) observer.on(AwaitingReplicas{*why});
    auto confirmed = await_replicas(plan, held_lock, *std::move(why), store, poller);
    const auto* sent_at = std::get_if<TimePoint>(&confirmed);
    if (sent_at == nullptr) {
      return cancel_grant(signals.next_number(), without_replicas(std::move(confirmed)));
    }
    held_lock.granted_at = *sent_at;
  }
  observer.on(Event{EventKind::acquired, BootClock::now(), held_lock.token, {}, held_lock.owner});

  auto fresh = fresh_lease(plan, held_lock, store, poller);
  const auto* counts_from = std::get_if<TimePoint>(&fresh);
  // A signal that came with the grant ends the wait too: the command must not start.
  const int signal = signals.next_number();
  if (signal == 0 && !readable(call_off) && counts_from != nullptr) {
    held_lock.granted_at = *counts_from;
    return held_lock;
  }
  LeaseEnd end = counts_from == nullptr ? std::get<LeaseEnd>(std::move(fresh)) : LeaseEnd{};
  return cancel_grant(signal, never_started(std::move(end)));
}

}  // namespace

Acquisition acquire_lock(const Plan& plan, lock::LockStore& store, Observer& observer,
                         Signals& signals, int call_off) {
  return acquire_with(nullptr, plan, store, observer, signals, call_off);
}

RunOutcome hold_and_run(const Plan& plan, const Connections& connections, Observer& observer,
                        Signals& signals) {
  TRY(auto state, map_shared_state());
  const OlderChildren older_children = OlderChildren::list();
  const RunContext context{plan, connections, observer, signals, *state, older_children};
  if (!plan.outer_runs.empty()) {
    if (auto inside = enter_held_lock(plan, connections, observer, signals)) {
      if (auto* without = std::get_if<RunOutcome>(&*inside)) return std::move(*without);
      return run_held(context, std::get<lock::HeldLock>(*inside), nullptr);
    }
  }
  EarlyGuard early(context);
  // rlock learns what the kernel refuses before it asks for the lock.
  if (plan.contain != Contain::no) TRY_STATUS(early.fork());
  auto acquired = acquire_with(&early, plan, connections.store, observer, signals, -1);
  if (auto* without = std::get_if<RunOutcome>(&acquired)) return std::move(*without);
  return run_held(context, std::get<lock::HeldLock>(acquired), early.take());
}

}  // namespace rlock::run
