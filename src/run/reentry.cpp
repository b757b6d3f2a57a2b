// Runs in rlock, on the main thread.

#include "run/reentry.hpp"

#include <algorithm>
#include <cstdint>

#include "lock/timing.hpp"
#include "util/duration.hpp"
#include "util/random.hpp"
#include "util/text.hpp"

namespace rlock::run {
namespace {

lock::HeldLock entry_in(const Plan& plan, const OuterRun& outer) {
  util::SystemRandom random;
  lock::HeldLock held_lock = outer.held_lock;
  held_lock.entry = lock::Entry::fresh(random);
  held_lock.min_hold = std::max(held_lock.min_hold, plan.claim.min_hold);
  return held_lock;
}

// The request has no end of the lease, because only the outer run knows it.
lock::RenewCall enter_call(const Plan& plan, const OuterRun& outer,
                           const lock::HeldLock& held_lock) {
  lock::RenewCall call = renew_call(plan.claim, held_lock, std::nullopt);
  if (!outer.may_restore) call.restore.reset();
  // A mode narrower than the held one can only be refused, and the request must not restore the
  // lease in that mode.
  if (plan.claim.limit.value() < held_lock.limit.value()) {
    call.limit = plan.claim.limit;
    call.restore.reset();
  }
  return call;
}

Error no_answer(const Plan& plan, const lock::LockStore& store) {
  return {ErrorKind::unavailable,
          util::format("cannot enter \"{}\": {}: no answer in time", plan.claim.name.text(),
                       store.server()),
          Retry::later};
}

// A server that answered before counts as having answered, even if it is unavailable now.
Error keep_answered(const Error& before, Error error) {
  error.answered = std::max(error.answered, before.answered);
  return error;
}

EnterResult read_reply(lock::RenewReply& reply, const lock::HeldLock& entered) {
  if (std::holds_alternative<lock::Upgrade>(reply)) return lock::Upgrade{};
  if (auto* lost = std::get_if<lock::Lost>(&reply)) return std::move(*lost);
  return entered;
}

// How long to try the servers, from `started` on.
struct EntryTries {
  const lock::WaitLimits& limits;
  lock::Queueing queueing;
  TimePoint started;
  lock::Poller& poller;
  lock::WaitObserver& observer;
  util::SystemRandom random{};
  Millis pause{0};
  lock::Failures failures{};

  TimePoint until(Answered reached) const {
    return limits.retry_until(started, queueing, std::nullopt, reached);
  }
  TimePoint attempt_until(Answered reached) const {
    const TimePoint longest = poller.now() + std::max(2 * limits.reach, timing::kAcquireAttempt);
    return queueing == lock::Queueing::never ? until(reached) : std::min(until(reached), longest);
  }
  // The pause is random, so that runs that wait for a server do not return at the same moment.
  lock::PollResult pause_after_failure() {
    pause = std::clamp(pause * 2, timing::kEntryPause, timing::kLongestAcquireBackoff);
    const auto spread = static_cast<uint64_t>(pause.count());
    return poller.pause(poller.now() + pause / 2 +
                        Millis(static_cast<Millis::rep>(random.next() % spread)));
  }
};

Result<EnterResult> request_entry(const Plan& plan, const OuterRun& outer, lock::LockStore& store,
                                  EntryTries& tries) {
  lock::Poller& poller = tries.poller;
  lock::HeldLock held_lock = entry_in(plan, outer);
  const lock::RenewCall call = enter_call(plan, outer, held_lock);
  Error transient_error = no_answer(plan, store);
  while (true) {
    TimePoint sent_at = poller.now();
    auto request = store.renew(call);
    lock::PollResult driven = poller.drive(*request, tries.attempt_until(transient_error.answered));
    if (driven == lock::PollResult::done) {
      auto reply = request->take();
      // If an answer took half the lease, rlock asks again.
      bool fresh = poller.now() - sent_at < timing::usable_lease(held_lock.lease(plan.claim.ttl));
      held_lock.granted_at = held_lock.asked_at = sent_at;
      if (reply && fresh) return read_reply(*reply, held_lock);
      if (!reply) transient_error = keep_answered(transient_error, std::move(reply).error());
    }
    transient_error.answered = std::max(transient_error.answered, request->answered());
    request.reset();
    const TimePoint now = poller.now();
    tries.failures.note(transient_error.cause, now);
    const TimePoint until = tries.until(transient_error.answered);
    const bool over =
        transient_error.retry == Retry::never || now >= until || tries.failures.is_lasting(now);
    if (driven != lock::PollResult::interrupted && !over) {
      tries.observer.no_server(transient_error, until);
      driven = tries.pause_after_failure();
    }
    if (driven != lock::PollResult::interrupted && !over) continue;
    // The server may have carried out a request even if its reply was lost.
    leave_outer_run(plan, held_lock, store, poller);
    if (driven == lock::PollResult::interrupted) return EnterResult(lock::Interrupted{});
    if (transient_error.retry == Retry::never) return transient_error;
    const auto tried = std::chrono::duration_cast<Millis>(now - tries.started);
    return tries.failures.end(std::move(transient_error), tried, now);
  }
}

// Whether the outer run may still restore the lease that the server lost: not if there is another
// holder.
bool may_be_restored(const OuterRun& outer, const lock::Lost& lost) {
  return outer.restore_grace > Millis(0) && lost.how == lock::LostHow::deleted && !lost.by;
}

// Whether the server has forgotten the outer run's grant, so that it refuses that run, too. A
// missing answer proves nothing.
bool forgotten(const Plan& plan, const OuterRun& outer, const lock::MakeInspector& make_inspector,
               lock::Poller& poller, TimePoint until) {
  auto inspector = make_inspector();
  lock::InspectCall call{plan.claim.name};
  call.holders_page = call.waiters_page = 0;
  auto seen = lock::finish(poller, inspector->inspect(call), until, inspector->server());
  return !seen || seen->last_grant < outer.held_lock.token;
}

Error restore_awaited(const lock::LockStore& store, const OuterRun& outer) {
  return {ErrorKind::unavailable,
          util::format("{}: the server lost the lease of the outer run; waiting for that run to "
                       "restore it, {} at most",
                       store.server(), util::format_duration(outer.restore_grace)),
          Retry::later, Answered::yes};
}

// Waits, because if this run acquired the lock itself, the outer run would lose it at its next
// renewal.
Result<EnterResult> await_restore(const Plan& plan, const OuterRun& outer, lock::LockStore& store,
                                  lock::Poller& poller, lock::WaitObserver& observer) {
  const TimePoint end = poller.now() + outer.restore_grace;
  while (true) {
    const bool last = poller.now() >= end;
    EntryTries tries{plan.limits, lock::Queueing::never, poller.now(), poller, observer};
    TRY(auto answer, request_entry(plan, outer, store, tries));
    const auto* lost = std::get_if<lock::Lost>(&answer);
    if (lost == nullptr || last || !may_be_restored(outer, *lost)) return answer;
    const TimePoint next = std::min(end, poller.now() + timing::kRestoreLook);
    if (poller.pause(next) == lock::PollResult::interrupted)
      return EnterResult(lock::Interrupted{});
  }
}

}  // namespace

void leave_outer_run(const Plan& plan, const lock::HeldLock& held_lock, lock::LockStore& store,
                     lock::Poller& poller) {
  auto request = store.release({plan.claim.name, held_lock.owner, held_lock.entry});
  poller.drive(*request, poller.now() + timing::kEntryReleaseTime, lock::Interruptible::no);
}

Result<EnterResult> enter_outer_run(const Plan& plan, const Connections& connections,
                                    lock::Poller& poller, lock::WaitObserver& observer) {
  lock::LockStore& store = connections.store;
  EntryTries tries{plan.limits, plan.claim.queueing, poller.now(), poller, observer};
  const OuterRun* lost_outer = nullptr;
  for (const OuterRun& outer : plan.outer_runs) {
    TRY(auto answer, request_entry(plan, outer, store, tries));
    const auto* lost = std::get_if<lock::Lost>(&answer);
    if (lost == nullptr) return answer;
    if (lost_outer == nullptr && may_be_restored(outer, *lost)) lost_outer = &outer;
  }
  const TimePoint until = poller.now() + plan.limits.reach;
  if (lost_outer == nullptr ||
      !forgotten(plan, *lost_outer, connections.make_inspector, poller, until)) {
    return EnterResult(lock::Lost{});
  }
  observer.transient_error(restore_awaited(store, *lost_outer));
  return await_restore(plan, *lost_outer, store, poller, observer);
}

}  // namespace rlock::run
