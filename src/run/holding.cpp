#include "run/holding.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "run/enter.hpp"
#include "run/release.hpp"
#include "run/supervisor.hpp"
#include "util/mutant.hpp"

namespace rlock::run {
namespace {

using namespace std::chrono_literals;

constexpr Millis kLongestRelease = 5s;
// The server may count longer than we dare to: worth one round trip also when our lease is over.
constexpr Millis kShortestRelease = 250ms;

lock::LeaseMonitor::Settings settings(const Plan& plan) {
  return {plan.claim.ttl, plan.kill_after, plan.watchdog};
}

// Only what the command's own end leaves to be said: an end that rlock made is told by its cause.
std::optional<LeaseEnd> late_news(const lock::ReleaseReply& reply) {
  if (reply.ending == lock::Ending::forced) {
    return LeaseEnd{lock::Lost{lock::LostHow::forced, std::nullopt, reply.note}, {}, false};
  }
  if (reply.ending == lock::Ending::expired) {
    return LeaseEnd{lock::Lost{lock::LostHow::expired, std::nullopt, reply.note}, {}, false};
  }
  if (reply.ending == lock::Ending::unknown) {
    return LeaseEnd{lock::Lost{lock::LostHow::gone, std::nullopt, {}}, {}, false};
  }
  return std::nullopt;
}

// Where an operator breaks the lock the outermost run ends everything inside: by a signal that may
// come before the news.
bool ended_from_outside(const Use& use, const Finish& finish) {
  return use.nested() && finish.lost && finish.lost->told &&
         finish.lost->told->how == lock::LostHow::forced &&
         std::holds_alternative<Signaled>(finish.end);
}

// `released`: none where the lock was not to be released.
Outcome outcome(const Use& use, Finish finish,
                const std::optional<util::Result<lock::ReleaseReply>>& released) {
  std::optional<util::Error> unreleased;
  if (released && !*released) unreleased = released->error();
  if (!finish.ended_for) {
    if (finish.exec_error != 0) return CannotExec{finish.exec_error, std::move(unreleased)};
    if (!finish.lost && released && *released) finish.lost = late_news(**released);
    if (ended_from_outside(use, finish)) return LeaseLost{std::move(*finish.lost), false, {}};
    return Ended{finish.end, std::move(finish.lost), std::move(unreleased),
                 std::move(finish.survivors)};
  }
  switch (*finish.ended_for) {
    case Cause::lease:
      break;
    case Cause::run_limit:
      return RunLimit{std::move(unreleased), std::move(finish.survivors), std::move(finish.lost)};
    case Cause::no_renewal:
    case Cause::no_guard:
      return Unprotected{std::move(*finish.error), std::move(unreleased),
                         std::move(finish.survivors)};
  }
  return LeaseLost{std::move(*finish.lost), !finish.started, std::move(finish.survivors)};
}

// One word for the history. What could not be executed is told as a shell tells it.
std::string result_of(const util::Result<Finish>& finish) {
  if (!finish) return "-";
  if (finish->ended_for == Cause::lease) return "lost";
  if (finish->ended_for == Cause::run_limit) return "max-run";
  if (finish->ended_for) return "-";
  if (finish->exec_error != 0) return finish->exec_error == ENOENT ? "exit:127" : "exit:126";
  if (const auto* exited = std::get_if<Exited>(&finish->end)) {
    return "exit:" + std::to_string(exited->code);
  }
  return "signal:" + std::to_string(std::get<Signaled>(finish->end).signal);
}

util::Result<lock::ReleaseReply> release(const Holding& holding, std::string result,
                                         lock::ReleaseHow how, TimePoint deadline) {
  TimePoint now = util::BootClock::now();
  auto left = std::clamp<util::Nanos>(deadline - now, kShortestRelease, kLongestRelease);
  const Use& use = holding.use;
  auto reply = release_until(
      holding.store, {holding.plan.claim.name, use.owner, use.entry, std::move(result), how},
      now + left);
  holding.observer.event({EventKind::released, util::BootClock::now(), use.token,
                          reply ? std::string() : "not confirmed: " + reply.error().text});
  return reply;
}

// Everything that the command's life needs is made before it starts.
util::Result<Finish> supervise(const Holding& holding, Lease& lease,
                               std::unique_ptr<Guard>& guard) {
  Terminal terminal = Terminal::open();
  Child child(holding.plan.argv, holding.plan.environment(holding.use));
  auto everywhere = [&] { return holding.store.granted_everywhere(util::BootClock::now()); };
  auto renewer = Renewer::make(renew_call(holding.plan.claim, holding.use),
                               {holding.make_store, holding.observer, lease, everywhere});
  if (!renewer) return std::move(renewer).error();
  if (auto watched = holding.signals.watch_command(); !watched) return std::move(watched).error();
  Supervisor supervisor({holding.plan, holding.use, holding.signals, holding.observer,
                         holding.state, lease, **renewer, terminal});
  auto finish = supervisor.run(child);
  guard = supervisor.take_guard();
  (*renewer)->stop();  // before the release: a renewal in flight would bring the lock back
  return finish;
}

}  // namespace

FreshLease fresh_lease(const Plan& plan, const lock::Acquired& acquired, lock::LockStore& store,
                       lock::Poller& poller) {
  lock::LeaseMonitor monitor(settings(plan), acquired.sent_at, poller.now());
  FreshLease fresh;
  if (mutant(util::Mutant::no_check_after_wait)) {
    fresh.granted_at = poller.now();
    return fresh;
  }
  fresh.granted_at = acquired.sent_at;
  if (monitor.deadline() - poller.now() >= plan.claim.ttl / 2) return fresh;
  fresh.granted_at.reset();
  while (poller.now() < monitor.terminate_at()) {
    TimePoint sent_at = poller.now();
    lock::RenewCall call = renew_call(
        plan.claim, {plan.claim.owner, acquired.token, plan.claim.limit, plan.claim.min_hold});
    call.valid_until = monitor.deadline();
    auto request = store.renew(call);
    lock::Drive driven = poller.drive(*request, monitor.attempt_deadline(sent_at));
    if (driven == lock::Drive::interrupted) return fresh;
    if (driven == lock::Drive::done) {
      auto reply = request->take();
      if (reply && std::holds_alternative<lock::Renewal>(*reply)) {
        fresh.granted_at = sent_at;
        return fresh;
      }
      if (reply) {
        if (auto* lost = std::get_if<lock::Lost>(&*reply)) fresh.lost.told = std::move(*lost);
        return fresh;
      }
      fresh.lost.last_trouble = std::move(reply).error();
    }
    monitor.failed(sent_at, poller.now());
    if (poller.pause(monitor.next_attempt()) == lock::Drive::interrupted) return fresh;
  }
  return fresh;
}

Outcome run_held(const Holding& holding) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Where a lost lease is to be ignored the guard heeds the death of rlock alone.
  SharedState* fence = holding.plan.on_lost == OnLost::terminate ? &holding.state : nullptr;
  Lease lease(settings(holding.plan), holding.granted_at, fence);
  std::unique_ptr<Guard> guard;  // outlives the release: the next in line need not wait for its end
  auto finish = supervise(holding, lease, guard);
  const bool used = finish && finish->started;
  const auto how = used ? lock::ReleaseHow::released : lock::ReleaseHow::unused;
  std::optional<util::Result<lock::ReleaseReply>> released;
  const bool all_gone = !finish || finish->survivors.empty();
  if (all_gone) released = release(holding, result_of(finish), how, lease.view().deadline);
  if (!finish) return std::move(finish).error();
  return outcome(holding.use, std::move(*finish), released);
}

}  // namespace rlock::run
