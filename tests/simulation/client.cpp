#include "simulation/client.hpp"

#include <algorithm>

#include "run/reentry.hpp"
#include "run/run_held.hpp"
#include "run/shared_lease.hpp"
#include "util/boot_timer.hpp"

namespace rlock::sim {

Client::Client(World& world, const Host& host, Ledger& ledger, const Run& run, size_t number,
               ClientRule broken, Open open)
    : world_(world),
      host_(host),
      ledger_(ledger),
      run_(run),
      number_(number),
      broken_(broken),
      open_(std::move(open)),
      process_(std::make_shared<Process>(world, host, number)) {}

void Client::live(std::function<void()> on_end) {
  ledger_.came(number_);
  process_->on_end([self = shared_from_this(), on_end = std::move(on_end)] {
    self->ledger_.left(self->number_);
    on_end();
  });
  process_->start([this] { main(); });
}

run::Plan Client::make_plan() {
  lock::AcquireCall claim{*lock::LockName::parse("job" + std::to_string(run_.lock)),
                          lock::Owner::fresh(process_->chance())};
  claim.limit = run_.limit;
  claim.ttl = run_.ttl;
  claim.responsive = lock::Responsive::run;
  claim.record = "run " + std::to_string(number_);
  if (run_.patience == 0s) claim.queueing = lock::Queueing::never;
  run::Plan plan{std::move(claim), {}, {}, {}};
  plan.kill_after = Millis(5000);
  if (run_.patience != Nanos::max()) plan.limits.deadline = process_->now() + run_.patience;
  return plan;
}

void Client::main() {
  run::Plan plan = make_plan();
  auto store = open_(*process_);
  lock::SystemPoller poller(kSignalFd);
  lock::WaitLoop wait(*store, poller, process_->chance(), *this);
  auto waited = wait.acquire(plan.claim, plan.limits);
  if (process_->dead() || !waited) return;
  auto* acquired = std::get_if<lock::Acquired>(&*waited);
  if (acquired == nullptr) return;
  ledger_.granted(number_, acquired->token.value);
  plan.claim.owner = acquired->owner;
  auto fresh = run::fresh_lease(plan, *acquired, *store, poller);
  if (process_->dead()) return;
  if (!fresh.granted_at) {
    ledger_.note_mishap(number_);
    (void)wait.cancel({plan.claim.name, plan.claim.owner},
                      poller.now() + timing::kUnusedGrantCancelTime);
    return;
  }
  acquired->sent_at = *fresh.granted_at;
  hold(plan, *store, *acquired);
}

void Client::hold(run::Plan& plan, lock::LockStore& store, const lock::Acquired& acquired) {
  guard_ = std::make_unique<run::SharedState>();
  run::SharedLease lease({plan.claim.ttl, plan.kill_after, plan.watchdog}, acquired.sent_at,
                         guard_.get());
  const run::HeldLock held{plan.claim.owner, acquired.token, plan.claim.limit};
  auto renewer = run::Renewer::make(
      run::renew_call(plan.claim, held),
      {[this] { return open_(*process_); }, *this, lease, [&] { return store.complete_grant(); }});
  if (!renewer) throw std::logic_error(renewer.error().text);
  const bool in_time = BootClock::now() < guard_->kill_at();
  if (in_time) {
    start_command();
    supervise(lease, **renewer, plan);
  }
  if (process_->dead()) return;
  (*renewer)->stop();
  release(plan, store, lease, in_time);
}

// As src/run/supervisor.cpp does it: TERM when the lease is lost or about to be, KILL before its
// end.
void Client::supervise(const run::SharedLease& lease, run::Renewer& renewer,
                       const run::Plan& plan) {
  const TimePoint thread_at = BootClock::now() + timing::kThreadAfter;
  std::optional<TimePoint> term_at;
  while (runs_ && !process_->dead()) {
    const auto view = lease.view();
    const TimePoint now = BootClock::now();
    if (!renewer.running() && now >= thread_at && !term_at) (void)renewer.start();
    const bool lost = view.lost || now >= view.terminate_at;
    if (lost && !term_at && !breaks(ClientRule::ends_the_command_in_time)) {
      term_at = now;
      ledger_.trace("run " + std::to_string(number_) + " ends its command: its lease " +
                    (view.lost ? "is lost" : "was not renewed"));
    }
    TimePoint until = term_at ? TimePoint::max() : view.terminate_at;
    if (!renewer.running()) until = std::min(until, thread_at);
    if (term_at) {
      const TimePoint killed = std::min(*term_at + plan.kill_after, std::max(now, view.kill_at));
      until = std::min(killed, *term_at + run_.dying);
      if (now >= until) end_command();
    }
    pollfd polled{renewer.fd(), POLLIN, 0};
    // Once it has reported the loss it would always be readable.
    if (term_at || view.lost) polled.fd = -1;
    if (runs_) util::poll_until({&polled, 1}, until);
  }
}

void Client::release(const run::Plan& plan, lock::LockStore& store, const run::SharedLease& lease,
                     bool used) {
  const TimePoint now = BootClock::now();
  const auto left = std::clamp<Nanos>(lease.view().deadline - now, timing::kShortestRelease,
                                      timing::kLongestRelease);
  lock::ReleaseCall call{plan.claim.name, plan.claim.owner};
  call.result = "exit:0";
  call.how = used ? lock::ReleaseHow::released : lock::ReleaseHow::unused;
  auto reply = run::release_until(store, call, now + left);
  if (!reply || reply->ending != lock::OwnerEnd::released) ledger_.died(number_);
}

void Client::start_command() {
  runs_ = true;
  ledger_.started(number_);
  world_.at(host_.boot.when(BootClock::now().time_since_epoch() + run_.hold),
            [self = shared_from_this()] { self->end_command(); });
  const bool unwatched =
      breaks(ClientRule::has_a_guard) || breaks(ClientRule::ends_the_command_in_time);
  if (!unwatched) watch_lease();
}

void Client::end_command() {
  if (!std::exchange(runs_, false)) return;
  ledger_.stopped(number_);
  process_->wake();
}

// The guard: looks when the lease, as it knows it, is about to end.
void Client::watch_lease() {
  if (!runs_) return;
  const Nanos kill_at = guard_->kill_at().time_since_epoch();
  if (host_.boot.at(world_.now()) >= kill_at) {
    ledger_.trace("the guard of run " + std::to_string(number_) + " ends the command");
    return end_command();
  }
  world_.at(host_.boot.when(kill_at), [self = shared_from_this()] { self->watch_lease(); });
}

void Client::kill() {
  if (process_->over() || process_->dead()) return;
  ledger_.trace("run " + std::to_string(number_) + " is killed");
  ledger_.died(number_);
  process_->kill();
  if (breaks(ClientRule::has_a_guard)) return;
  world_.after(process_->chance().between(100us, 20ms),
               [self = shared_from_this()] { self->end_command(); });
}

void Client::queued(const lock::Queued& queued) {
  if (!process_->dead()) ledger_.queued(number_, queued.ticket.value);
}

}  // namespace rlock::sim
