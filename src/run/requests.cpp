// Runs in rlock, on both threads, and in the background renewer.

#include "run/requests.hpp"

#include <algorithm>
#include <utility>

#include "lock/timing.hpp"

namespace rlock::run {
namespace {

// Merges the replies to a release that a failover may have lost, so that it was repeated: the first
// master reports how the owner ended, the last one what is marked as done.
lock::ReleaseReply once_more(lock::ReleaseReply first, const lock::ReleaseReply& last) {
  first.marked = last.marked;
  return first;
}

// Drives a request on through signals, each of which `interrupt` is asked about. nullopt: it ended
// the attempts.
template <class T>
std::optional<Result<T>> drive_through(lock::Poller& poller, lock::InFlight<T> request,
                                       TimePoint until, const std::string& server,
                                       const ReleaseInterrupt& interrupt) {
  lock::PollResult driven;
  while ((driven = poller.drive(*request, until)) == lock::PollResult::interrupted) {
    if (interrupt.ends()) return std::nullopt;
  }
  if (driven == lock::PollResult::done) return request->take();
  return lock::no_answer(server);
}

}  // namespace

lock::LeaseMonitor::Settings lease_settings(Millis ttl, uint64_t replicas, Millis kill_after,
                                            lock::Watchdog watchdog) {
  const Millis gap = replicas > 0 ? timing::replica_clock_gap(ttl) : Millis(0);
  return {ttl, kill_after, watchdog, gap};
}

lock::LeaseMonitor::Settings lease_settings(const Plan& plan, const lock::HeldLock& held_lock) {
  return lease_settings(held_lock.lease(plan.claim.ttl), plan.claim.replicas, plan.kill_after,
                        plan.watchdog);
}

lock::RenewCall renew_call(const lock::Claim& claim, const lock::HeldLock& held_lock,
                           std::optional<TimePoint> lease_end) {
  lock::RenewCall call{claim, held_lock.entry,
                       lock::Restore{held_lock.token, held_lock.slot, lease_end}};
  call.owner = held_lock.owner;
  call.limit = held_lock.limit;
  call.min_hold = held_lock.min_hold;
  call.ttl = held_lock.lease(claim.ttl);
  if (held_lock.nested()) {  // this process does not know what the outer run asked for
    call.once.reset();
    call.supersede.reset();
    call.history_rows.reset();
  }
  return call;
}

Confirmed await_replicas(const Plan& plan, const lock::HeldLock& held_lock, Error unconfirmed,
                         lock::LockStore& store, lock::Poller& poller) {
  const bool endless = plan.limits.deadline == TimePoint::max();
  TimePoint until = endless ? poller.now() + plan.limits.outage : plan.limits.deadline;
  if (plan.claim.queueing == lock::Queueing::never) until = poller.now();
  const TimePoint begun = poller.now();
  Millis backoff{0};
  do {
    backoff = std::clamp(backoff * 2, timing::kFirstAcquireBackoff, timing::kLongestAcquireBackoff);
    if (poller.pause(std::min(until, poller.now() + backoff)) == lock::PollResult::interrupted) {
      break;
    }
    const TimePoint sent_at = poller.now();
    auto request = store.renew(renew_call(plan.claim, held_lock, std::nullopt));
    const lock::PollResult driven = poller.drive(*request, sent_at + timing::kAcquireAttempt);
    if (driven == lock::PollResult::interrupted) break;
    if (driven == lock::PollResult::deadline) continue;
    auto reply = request->take();
    request.reset();
    if (reply && std::holds_alternative<lock::Renewal>(*reply)) {
      auto outlasts = lock::outlasts_failover(store, poller, poller.now() + timing::kAcquireAttempt,
                                              timing::failover_check(plan.claim.ttl));
      if (!outlasts) break;
      if (*outlasts) return sent_at;
      unconfirmed = std::move(*outlasts).error();
      unconfirmed.answered = Answered::yes;
      continue;
    }
    if (reply) {
      if (auto* lost = std::get_if<lock::Lost>(&*reply)) return std::move(*lost);
      continue;
    }
    if (reply.error().retry == Retry::never) return std::move(reply).error();
  } while (poller.now() < until);
  unconfirmed.tried = std::chrono::duration_cast<Millis>(poller.now() - begun);
  return unconfirmed;
}

std::variant<TimePoint, LeaseEnd> fresh_lease(const Plan& plan, const lock::HeldLock& held_lock,
                                              lock::LockStore& store, lock::Poller& poller) {
  lock::LeaseMonitor monitor(lease_settings(plan, held_lock), held_lock.granted_at, poller.now());
  const Nanos left = monitor.deadline() - poller.now();
  if (left >= timing::usable_lease(plan.claim.ttl)) return held_lock.granted_at;
  LeaseEnd end;
  while (poller.now() < monitor.terminate_at()) {
    TimePoint sent_at = poller.now();
    auto request = store.renew(renew_call(plan.claim, held_lock, monitor.deadline()));
    lock::PollResult driven = poller.drive(*request, monitor.attempt_deadline(sent_at));
    if (driven == lock::PollResult::interrupted) break;
    if (driven == lock::PollResult::done) {
      auto reply = request->take();
      if (reply && std::holds_alternative<lock::Renewal>(*reply)) return sent_at;
      if (reply) {
        if (auto* lost = std::get_if<lock::Lost>(&*reply)) end.reported = std::move(*lost);
        break;
      }
      end.last_error = std::move(reply).error();
    }
    monitor.failed(sent_at, poller.now());
    if (poller.pause(monitor.next_attempt()) == lock::PollResult::interrupted) break;
  }
  return end;
}

Result<lock::ReleaseReply> release_until(lock::LockStore& store, lock::ReleaseCall call,
                                         TimePoint until, const ReleaseInterrupt& interrupt) {
  lock::SystemPoller poller(interrupt.fd);
  const Error stopped{ErrorKind::unavailable, "a second TERM or INT stopped the attempts"};
  const TimePoint begun = poller.now();
  const Millis asked = call.once ? call.once->asked : Millis(0);
  Millis attempt = timing::kFirstReleaseAttempt;
  std::optional<Error> why;
  std::optional<lock::ReleaseReply> first;  // a reply that a failover may have lost
  for (Millis pause = timing::kFirstReleasePause;;
       pause = std::min(pause * 2, timing::kLongestReleasePause)) {
    // After a failed connection, or a request that was given up, a store sends the next request
    // over a new connection.
    const TimePoint give_up = poller.now() + attempt;
    if (call.once)
      call.once->asked = asked + std::chrono::duration_cast<Millis>(poller.now() - begun);
    auto released = drive_through(poller, store.release(call), std::min(until, give_up),
                                  store.server(), interrupt);
    if (!released) return stopped;
    Result<lock::ReleaseReply> reply = *std::move(released);
    if (poller.now() >= give_up) attempt *= 2;  // the server may just be slow
    if (reply) {
      // A master that is being replaced may be the only server that knows about the release.
      const TimePoint now = poller.now();
      const auto half = std::chrono::duration_cast<Millis>((until - now) / 2);
      auto check = store.check_failover(std::clamp(half, Millis(0), timing::kLongestFailoverCheck));
      std::optional<Status> outlasts = Done{};
      if (check) {
        outlasts = drive_through(poller, std::move(check), std::max(until, now), store.server(),
                                 interrupt);
      }
      if (!outlasts) return stopped;
      if (!first) first = *reply;
      if (*outlasts) return once_more(std::move(*first), *std::move(reply));
      reply = std::move(*outlasts).error();
    }
    if (reply.error().retry != Retry::later) return reply;
    // The error of an attempt that `until` cut short explains less than the one before.
    if (poller.now() < until || !why) why = std::move(reply).error();
    if (poller.now() + pause >= until) return std::move(*why);
    const TimePoint next = poller.now() + pause;
    while (poller.pause(next) == lock::PollResult::interrupted) {
      if (interrupt.ends()) return stopped;
    }
  }
}

}  // namespace rlock::run
