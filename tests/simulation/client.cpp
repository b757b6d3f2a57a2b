#include "simulation/client.hpp"

#include <algorithm>

#include "run/renewer.hpp"
#include "run/requests.hpp"
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

// As src/cli makes it of the options; of a period only its number.
std::optional<lock::Once> Client::once() const {
  lock::Once once;
  switch (run_.once) {
    case OnceUse::none:
      return std::nullopt;
    case OnceUse::key:
      once.key = std::to_string(run_.key);
      break;
    case OnceUse::period:
      once.kind = lock::OnceKind::period;
      once.key = "minute:" + std::to_string(wall_micros() / 60'000'000);
      once.span = std::chrono::duration_cast<Millis>(kOncePeriod);
      break;
    case OnceUse::within:
      once.kind = lock::OnceKind::within;
      once.span = std::chrono::duration_cast<Millis>(kOnceWithin);
  }
  once.max_failures = run_.max_failures;
  return once;
}

run::Plan Client::make_plan() {
  lock::AcquireCall claim{{*lock::LockName::parse("job" + std::to_string(run_.lock)),
                           lock::Owner::fresh(process_->chance())}};
  claim.limit = run_.limit;
  claim.ttl = run_.ttl;
  claim.responsive = lock::Responsive::run;
  claim.record = "run " + std::to_string(number_);
  claim.replicas = run_.replicas;
  claim.while_closed = run_.while_closed;
  claim.urgent = run_.urgent;
  claim.min_hold = run_.min_hold;
  if (run_.patience == 0s) claim.queueing = lock::Queueing::never;
  claim.once = once();
  if (claim.once) ledger_.asks(number_, to_string(run_.once) + claim.once->key);
  if (run_.supersedes) claim.supersede = lock::Supersede{run_.number};
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
  auto waited = wait_for_lock(plan, wait, poller);
  if (process_->dead() || !waited) return;
  auto* acquired = std::get_if<lock::HeldLock>(&*waited);
  if (acquired == nullptr) return note_refusal(*waited);
  lock::HeldLock held = std::move(*acquired);
  ledger_.granted(number_, held.token.value);
  plan.claim.owner = held.owner;
  if (held.unconfirmed && !breaks(ClientRule::starts_when_confirmed) &&
      !await_replicas(plan, held, *store, poller)) {
    if (process_->dead()) return;
    ledger_.note_mishap(number_);
    (void)wait.cancel({plan.claim.name, plan.claim.owner},
                      poller.now() + timing::kUnusedGrantCancelTime);
    return;
  }
  const auto fresh = run::fresh_lease(plan, held, *store, poller);
  if (process_->dead()) return;
  const auto* granted_at = std::get_if<TimePoint>(&fresh);
  if (granted_at == nullptr) {
    ledger_.note_mishap(number_);
    (void)wait.cancel({plan.claim.name, plan.claim.owner},
                      poller.now() + timing::kUnusedGrantCancelTime);
    return;
  }
  held.granted_at = *granted_at;
  hold(plan, *store, held);
}

// With `away`: calls that follow each other, as with --ticket.
Result<lock::WaitResult> Client::wait_for_lock(run::Plan& plan, lock::WaitLoop& wait,
                                               lock::Poller& poller) {
  while (true) {
    auto waited = wait.acquire(plan.claim, plan.limits);
    if (process_->dead() || !waited || run_.away == 0s) return waited;
    const auto* late = std::get_if<lock::TimedOut>(&*waited);
    if (late == nullptr) return waited;
    ledger_.goes_away(number_);
    const TimePoint back = poller.now() + run_.away;
    if (poller.pause(back) == lock::PollResult::interrupted || process_->dead()) return waited;
    ledger_.returns(number_);
    plan.claim.owner = lock::Owner::fresh(process_->chance());
    plan.claim.ticket = late->ticket;
    plan.limits.deadline = poller.now() + run_.patience;
  }
}

// As acquire_lock() of src/run/run.cpp does it: whether something may run.
bool Client::await_replicas(const run::Plan& plan, lock::HeldLock& held, lock::LockStore& store,
                            lock::Poller& poller) const {
  const auto confirmed = run::await_replicas(plan, held, *held.unconfirmed, store, poller);
  const auto* sent_at = std::get_if<TimePoint>(&confirmed);
  if (sent_at == nullptr || process_->dead()) return false;
  held.granted_at = *sent_at;
  return true;
}

void Client::note_refusal(const lock::WaitResult& result) {
  if (const auto* done = lock::refusal_in<lock::AlreadyDone>(result)) {
    ledger_.found_done(number_, done->token.value);
  } else if (const auto* failed = lock::refusal_in<lock::FailedTooOften>(result)) {
    ledger_.failed_too_often(number_, failed->times);
  } else if (const auto* superseded = lock::refusal_in<lock::Superseded>(result)) {
    ledger_.superseded(number_, std::stoul(superseded->record.substr(4)));
  } else if (const auto* ended = lock::refusal_in<lock::OwnerEnded>(result)) {
    if (ended->ending == lock::OwnerEnd::forced) ledger_.note_mishap(number_);
  }
}

void Client::hold(run::Plan& plan, lock::LockStore& store, const lock::HeldLock& held) {
  guard_ = std::make_unique<run::SharedState>();
  auto settings =
      run::lease_settings(plan.claim.ttl, plan.claim.replicas, plan.kill_after, plan.watchdog);
  if (breaks(ClientRule::allows_for_drift)) settings.ttl += timing::drift(settings.ttl);
  run::SharedLease lease(settings, held.granted_at, guard_.get());
  auto renewer = run::Renewer::make(
      plan.claim, held,
      {[this] { return open_(*process_); }, *this, lease, [&] { return store.complete_grant(); }});
  if (!renewer) throw std::logic_error(renewer.error().text);
  if (BootClock::now() < guard_->kill_at()) {
    start_command();
    supervise(lease, **renewer, plan);
  }
  if (process_->dead()) return;
  (*renewer)->stop();
  release(plan, store, lease, held);
}

// As src/run/supervisor.cpp does it: TERM when the lease is lost or about to be, or once it was
// asked to stop; KILL before the lease ends.
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
      terminated_ = true;
      ledger_.trace("run " + std::to_string(number_) + " ends its command: its lease " +
                    (view.lost ? "is lost" : "was not renewed"));
    }
    if (process_->interrupted() && !std::exchange(terminated_, true)) let_command_end();
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

// As src/run/run.cpp does it: a success is recorded as long as the lease lasts.
void Client::release(const run::Plan& plan, lock::LockStore& store, const run::SharedLease& lease,
                     const lock::HeldLock& held) {
  const TimePoint now = BootClock::now();
  lock::ReleaseCall call{plan.claim.name, plan.claim.owner};
  call.replicas = plan.claim.replicas;
  call.result = succeeded_ ? "exit:0" : "exit:1";
  call.how = used_ ? lock::ReleaseHow::released : lock::ReleaseHow::unused;
  if (used_) {
    call.run = held.token;
    call.record = plan.claim.record;
  }
  Nanos left = std::max<Nanos>(lease.view().deadline - now, timing::kShortestRelease);
  if (plan.claim.once && used_) {
    const auto asked = std::chrono::duration_cast<Millis>(now - held.asked_at);
    const auto waited = std::chrono::duration_cast<Millis>(held.granted_at - held.asked_at);
    call.once = {*plan.claim.once, asked, held.token, succeeded_, waited};
  } else {
    left = std::min<Nanos>(left, timing::kLongestRelease);
  }
  const auto reply = run::release_until(store, call, now + left);
  using enum lock::OwnerEnd;
  const bool freed = reply && (reply->ending == released || reply->ending == forced);
  if (!freed) ledger_.died(number_);
  if (process_->dead() || !call.once) return;
  ledger_.released(number_, reply && reply->ending == released,
                   reply && reply->marked != lock::Marked::no);
}

void Client::start_command() {
  runs_ = used_ = true;
  ledger_.started(number_);
  world_.at(host_.boot.when(BootClock::now().time_since_epoch() + run_.hold),
            [self = shared_from_this()] { self->end_command(CommandEnd::by_itself); });
  const bool unwatched =
      breaks(ClientRule::has_a_guard) || breaks(ClientRule::ends_the_command_in_time);
  if (!unwatched) watch_lease();
}

// After the TERM that was passed on.
void Client::let_command_end() {
  world_.after(run_.dying, [self = shared_from_this()] { self->end_command(); });
}

void Client::end_command(CommandEnd how) {
  if (runs_ && frozen()) {
    world_.at(frozen_until_ + process_->chance().between(10us, 20ms),
              [self = shared_from_this(), how] { self->end_command(how); });
    return;
  }
  if (!std::exchange(runs_, false)) return;
  succeeded_ = how == CommandEnd::by_itself && !terminated_ && !run_.fails;
  ledger_.stopped(number_, succeeded_);
  process_->wake();
}

// The guard: looks when the lease, as it knows it, is about to end.
void Client::watch_lease() {
  if (!runs_) return;
  const Nanos kill_at = guard_->kill_at().time_since_epoch();
  if (!frozen() && host_.boot.at(world_.now()) >= kill_at) {
    ledger_.trace("the guard of run " + std::to_string(number_) + " ends the command");
    return end_command();
  }
  const Moment thawed = frozen_until_ + (frozen() ? process_->chance().between(10us, 20ms) : 0s);
  world_.at(std::max(host_.boot.when(kill_at), thawed),
            [self = shared_from_this()] { self->watch_lease(); });
}

void Client::freeze(Moment until) {
  if (until <= frozen_until_) return;
  frozen_until_ = until;
  process_->stop();
  world_.at(until, [self = shared_from_this()] {
    if (!self->frozen()) self->process_->resume();
  });
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
