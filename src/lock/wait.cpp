#include "lock/wait.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "util/text.hpp"

namespace rlock::lock {
namespace {

constexpr int kWarnAfter = 3;  // consecutive failed waits
// A server sends only a few wakes that bring nothing.
constexpr int kMostBriefRounds = 50;
constexpr int kMostSweeps = 1000;
// The longest time of a try before the first answer, because a server may accept it and then
// vanish.
constexpr Millis kLongestFirstTry{20'000};

Millis next_backoff(Millis backoff, Millis longest = timing::kLongestAcquireBackoff) {
  return std::clamp(backoff * 2, timing::kFirstAcquireBackoff, longest);
}

// The longest backoff of a request that has only the time `reach`: several more tries fit into it.
Millis longest_backoff(Millis reach) {
  return std::clamp(reach / 8, timing::kFirstAcquireBackoff, timing::kLongestAcquireBackoff);
}

// Whether a retry cannot help. It can help after a password or a certificate is refused that was
// right before, because its file may be about to change.
bool is_hopeless(const Error& error, bool answered) {
  if (error.retry == Retry::later) {
    return error.kind != ErrorKind::unavailable && !(error.kind == ErrorKind::denied && answered);
  }
  return error.kind != ErrorKind::unavailable || !answered;
}

// Reports once that only the server's reply is left to wait for.
class AnnouncedRequest final : public Request {
 public:
  AnnouncedRequest(Request& request, WaitObserver& observer)
      : request_(request), observer_(observer) {}
  void wants(std::vector<pollfd>& out) const override { request_.wants(out); }
  TimePoint due() const override { return request_.due(); }
  bool advance(TimePoint now) override {
    if (request_.advance(now)) return true;
    if (!announced_ && only_reads()) {
      announced_ = true;
      observer_.awaiting_reply();
    }
    return false;
  }

 private:
  bool only_reads() const {
    std::vector<pollfd> fds;
    request_.wants(fds);
    auto reads = [](const pollfd& fd) { return fd.events == POLLIN; };
    return !fds.empty() && std::all_of(fds.begin(), fds.end(), reads);
  }

  Request& request_;
  WaitObserver& observer_;
  bool announced_ = false;
};

// Whether the reply may still be a grant, or the next reply may be one immediately.
bool is_hopeful(const AcquireReply& reply) {
  return std::holds_alternative<Granted>(reply) || std::holds_alternative<RetryNow>(reply);
}

Error no_answer(const LockName& name, const std::string& server) {
  return {ErrorKind::unavailable,
          util::format("cannot acquire \"{}\": {}: no answer in time", name.text(), server),
          Retry::later};
}

}  // namespace

Result<WaitResult> WaitLoop::acquire(AcquireCall call, const WaitLimits& limits) {
  WaitState state{std::move(call), limits, poller_.now()};
  while (true) {
    if (auto result = step(state)) return std::move(*result);
  }
}

TimePoint WaitLimits::retry_until(TimePoint started, Queueing queueing,
                                  std::optional<TimePoint> answered, Answered reached) const {
  if (unreached && reached == Answered::no) return started + *unreached;
  const Millis least = std::max(reach, unreached.value_or(Millis(0)));
  if (queueing == Queueing::never) return started + least;
  if (deadline == TimePoint::max()) return answered.value_or(started) + std::max(outage, least);
  return answered ? deadline : std::max(deadline, started + least);
}

// Before the first answer a try lasts as long as it may take to reach the server, also through
// sentinels or other nodes, but not longer than kLongestFirstTry.
TimePoint WaitLoop::WaitState::reply_deadline(TimePoint sent_at) const {
  if (answered) {
    return waits() ? std::min(limits.deadline, sent_at + timing::kAcquireAttempt)
                   : sent_at + timing::kAcquireAttempt;
  }
  const TimePoint until = retry_until() + timing::kConnectErrorGrace;
  return std::min(
      until, sent_at + std::clamp(2 * limits.reach, timing::kAcquireAttempt, kLongestFirstTry));
}

std::optional<Result<WaitResult>> WaitLoop::step(WaitState& state) {
  TimePoint sent_at = poller_.now();
  state.call.asked = std::chrono::duration_cast<Millis>(sent_at - state.started);
  auto request = store_.acquire(state.call);
  AnnouncedRequest announced(*request, observer_);
  Request& driver = std::exchange(state.first, false) ? static_cast<Request&>(announced) : *request;
  PollResult driven = drive_ticking(driver, state.reply_deadline(sent_at));
  if (driven == PollResult::done) {
    auto reply = request->take();
    request.reset();  // the observer may ask the same store
    if (!reply || !is_hopeful(*reply)) observer_.not_granted();
    if (!reply) return recover(state, std::move(reply).error());
    state.answered = poller_.now();
    state.reached = Answered::yes;
    state.failures.note_success();
    state.transient_error.reset();
    state.backoff = Millis(0);
    return handle_reply(state, std::move(*reply), sent_at);
  }
  observer_.not_granted();
  const Answered answered = request->answered();
  request.reset();
  if (driven == PollResult::interrupted) return cancel_and_return(state, WaitResult(Interrupted{}));
  const bool in_time = !state.transient_error && state.answered && state.waits();
  if (in_time && poller_.now() >= state.limits.deadline) {
    return time_out(state);
  }
  // The deadline interrupts the last try, so the error of an earlier try explains more.
  Error error = state.transient_error.value_or(no_answer(state.call.name, store_.server()));
  error.answered = std::max(error.answered, answered);
  return recover(state, std::move(error));
}

std::optional<Result<WaitResult>> WaitLoop::handle_reply(WaitState& state, AcquireReply reply,
                                                         TimePoint sent_at) {
  if (auto* granted = std::get_if<Granted>(&reply)) {
    return handle_grant(state, std::move(*granted), sent_at);
  }
  if (auto* why = std::get_if<Refused>(&reply)) return refused(state, std::move(*why));
  if (auto* queued = std::get_if<Queued>(&reply)) {
    state.call.ticket = queued->ticket;
    state.obstacle = queued->obstacle;
    state.needs = queued->needs;
    state.queued_at = poller_.now();
    state.set_slice(queued->slice.value_or(timing::kWaitSlice));
    observer_.queued(*queued);
    return wait(state, std::move(*queued));
  }
  // There was much to sweep. Even a run that does not wait gets one try, but no server delays rlock
  // forever.
  TimePoint until = std::max(state.limits.deadline, state.started + state.limits.reach);
  if (poller_.now() >= until) return time_out(state);
  if (++state.sweeps <= kMostSweeps) return std::nullopt;
  return pause_before_retry(state, until, poll_pause(state));
}

std::optional<Result<WaitResult>> WaitLoop::handle_grant(WaitState& state, Granted granted,
                                                         TimePoint sent_at) {
  const TimePoint until = poller_.now() + timing::kAcquireAttempt;
  const Millis patience = timing::failover_check(state.call.ttl);
  auto outlasts = outlasts_failover(store_, poller_, until, patience);
  if (!outlasts) return cancel_and_return(state, WaitResult(Interrupted{}));
  if (!*outlasts) return await_failover(state, std::move(*outlasts).error());
  const uint64_t slot = std::max<uint64_t>(granted.slot, state.call.numbered ? 1 : 0);
  // The repeat of a granted request writes nothing that replicas could confirm.
  if (state.call.replicas > 0 && state.lost_reply && !granted.unconfirmed) {
    granted.unconfirmed = no_answer(state.call.name, store_.server());
  }
  return WaitResult(HeldLock{.owner = granted.owner.value_or(state.call.owner),
                             .token = granted.token,
                             .limit = state.call.limit,
                             .min_hold = state.call.min_hold,
                             .slot = slot,
                             .granted_at = sent_at,
                             .asked_at = state.started,
                             .unconfirmed = std::move(granted.unconfirmed)});
}

// The grant may be lost, and the new master may grant the lock to another owner. So the same owner
// asks again, with its position in the queue, until a master that stays has its grant.
std::optional<Result<WaitResult>> WaitLoop::await_failover(WaitState& state, Error why) {
  const TimePoint now = poller_.now();
  const TimePoint until = state.waits() ? state.limits.deadline : state.retry_until();
  why.answered = Answered::yes;
  why.text = util::format("\"{}\" was granted, but {}", state.call.name.text(), why.text);
  if (is_hopeless(why, false) || now >= until) {
    why.tried = std::chrono::duration_cast<Millis>(now - state.started);
    return cancel_and_return(state, std::move(why));
  }
  observer_.not_granted();
  observer_.transient_error(why);
  state.lost_reply = true;
  state.transient_error = std::move(why);
  if (poller_.pause(std::min(until, now + timing::kFailoverPause)) == PollResult::interrupted) {
    return cancel_and_return(state, WaitResult(Interrupted{}));
  }
  return std::nullopt;
}

// Cancels if an earlier request may arrive late, because it would be granted a lock that no run
// uses. An owner that has ended is granted nothing. But its revoked grant counts as held until it
// confirms: otherwise the next waiter waits until the grant expires.
Result<WaitResult> WaitLoop::refused(const WaitState& state, Refused why) {
  const auto* ended = std::get_if<OwnerEnded>(&why);
  const bool cancels = ended != nullptr ? ended->ending == OwnerEnd::forced : state.lost_reply;
  if (cancels) return cancel_and_return(state, WaitResult(std::move(why)));
  return WaitResult(std::move(why));
}

// Returns nullopt if the waiter has to ask again.
std::optional<Result<WaitResult>> WaitLoop::wait(WaitState& state, Queued queued) {
  while (true) {
    bool slept = false;
    auto end = wait_once(state, queued, slept);
    if (end || !slept || !keeps_position(state, queued)) return end;
  }
}

// Whether a heartbeat was enough. If it fails, or another owner holds the lock, the waiter has to
// ask.
bool WaitLoop::keeps_position(WaitState& state, Queued& queued) {
  if (!state.may_stay_idle()) return false;
  auto request = store_.heartbeat(state.call.name, state.call.owner);
  if (!request) return false;
  const TimePoint until = std::min(state.limits.deadline, poller_.now() + timing::kAcquireAttempt);
  if (drive_ticking(*request, until) != PollResult::done) return false;
  const auto reply = request->take();
  request.reset();
  const auto* rest = reply ? std::get_if<StillQueued>(&*reply) : nullptr;
  if (rest == nullptr || !queued.obstacle || id_of(*queued.obstacle) != rest->holder) return false;
  const TimePoint now = poller_.now();
  const auto age = std::chrono::duration_cast<Millis>(now - state.queued_at);
  queued.position = rest->position;
  queued.look_again.reset();
  queued.obstacle = aged(*queued.obstacle, age);
  std::visit([&](auto& one) { one.left = rest->left; }, *queued.obstacle);
  state.answered = state.queued_at = now;
  state.obstacle = queued.obstacle;
  state.set_slice(rest->slice);
  observer_.queued(queued);
  return true;
}

// `slept`: the waiter was not woken.
std::optional<Result<WaitResult>> WaitLoop::wait_once(WaitState& state, const Queued& queued,
                                                      bool& slept) {
  TimePoint now = poller_.now();
  TimePoint deadline = state.limits.deadline;
  if (now >= deadline) return time_out(state);
  Millis blocked = time_to_block(state, queued);
  auto request = store_.wait_for_wake(state.call.name, state.call.owner, blocked);
  PollResult driven =
      drive_ticking(*request, std::min(deadline, now + blocked + timing::kWaitReplyGrace));
  if (driven == PollResult::done) {
    const TimePoint::duration took = poller_.now() - now;
    auto wake = request->take();
    request.reset();
    slept = wake && *wake == Wake::slept;
    return handle_wake(state, std::move(wake), std::chrono::duration_cast<Millis>(took));
  }
  request.reset();
  if (driven == PollResult::interrupted) return cancel_and_return(state, WaitResult(Interrupted{}));
  if (poller_.now() >= deadline) return time_out(state);
  return std::nullopt;
}

// The server that has just queued this owner is available, so an error while waiting does not cost
// the position.
std::optional<Result<WaitResult>> WaitLoop::handle_wake(WaitState& state, Result<Wake> wake,
                                                        Millis took) {
  state.brief_rounds = took < timing::kBriefRound ? state.brief_rounds + 1 : 0;
  if (wake) {
    state.failed_waits = 0;
    if (state.brief_rounds <= kMostBriefRounds) return std::nullopt;
    return pause_before_retry(state, state.limits.deadline, poll_pause(state));
  }
  const ErrorKind kind = wake.error().kind;
  if (kind == ErrorKind::denied || kind == ErrorKind::wrong_type) {
    return recover(state, std::move(wake).error());
  }
  observer_.transient_error(wake.error());
  if (took >= timing::kPollPause) state.failed_waits = 0;
  if (++state.failed_waits == kWarnAfter && !std::exchange(state.must_poll, true)) {
    observer_.must_poll(wake.error());
  }
  return pause_before_retry(state, state.limits.deadline,
                            state.failed_waits == 1 ? pause_after_cut(state) : poll_pause(state));
}

std::optional<Result<WaitResult>> WaitLoop::pause_before_retry(WaitState& state, TimePoint until,
                                                               Millis pause) {
  if (poller_.pause(std::min(until, poller_.now() + pause)) == PollResult::interrupted) {
    return cancel_and_return(state, WaitResult(Interrupted{}));
  }
  if (poller_.now() >= until) return time_out(state);
  return std::nullopt;
}

// A transient error does not cost the position in the queue; a permanent error ends the
// acquisition.
std::optional<Result<WaitResult>> WaitLoop::recover(WaitState& state, Error error) {
  TimePoint now = poller_.now();
  // The servers of the lock have answered: the wait continues until they agree on a master.
  if (error.cause == Cause::failover) state.answered = now;
  state.reached = error.answered = std::max(error.answered, state.reached);
  state.failures.note(error.cause, now);
  if (is_hopeless(error, state.answered.has_value())) {
    return cancel_and_return(state, std::move(error));
  }
  TimePoint until = state.retry_until();
  // Replacing certificates takes less than an outage; later they need a person.
  if (error.kind == ErrorKind::denied && is_about_tls(error.cause)) {
    until = std::min(until, state.answered.value_or(state.started) + state.limits.outage);
  }
  if (now >= until || state.failures.is_lasting(now)) {
    const auto tried =
        std::chrono::duration_cast<Millis>(now - state.answered.value_or(state.started));
    return cancel_and_return(state, state.failures.end(std::move(error), tried, now));
  }
  observer_.no_server(error, until);
  state.lost_reply = true;
  state.transient_error = std::move(error);
  state.backoff = state.waits() ? next_backoff(state.backoff)
                                : next_backoff(state.backoff, longest_backoff(state.limits.reach));
  const TimePoint next = now + pause_after_failure(state);
  if (poller_.pause(std::min(until, next)) == PollResult::interrupted) {
    return cancel_and_return(state, WaitResult(Interrupted{}));
  }
  return std::nullopt;
}

Result<WaitResult> WaitLoop::time_out(const WaitState& state) {
  TimedOut late{state.obstacle, state.needs, state.call.ticket};
  const auto age = std::chrono::duration_cast<Millis>(poller_.now() - state.queued_at);
  if (late.obstacle) late.obstacle = aged(*late.obstacle, age);
  return cancel_and_return(state, WaitResult(std::move(late)));
}

// The server may have carried out a failed request, so what it acquired is cancelled.
Result<WaitResult> WaitLoop::cancel_and_return(const WaitState& state, Result<WaitResult> result) {
  CancelCall call{state.call.name, state.call.owner};
  if (result && std::holds_alternative<TimedOut>(*result)) call.how = CancelHow::timed_out;
  const TimePoint brief = poller_.now() + timing::kShortCancelTime;
  const bool interrupted = result && std::holds_alternative<Interrupted>(*result);
  // A server that was unavailable until now is asked once.
  if (!state.answered && (!interrupted || state.transient_error)) {
    (void)finish(poller_, store_.cancel(call), brief, store_.server(), Interruptible::no);
    return result;
  }
  const TimePoint left = std::min(state.limits.deadline, poller_.now() + timing::kCancelTime);
  auto cancelled = cancel(call, interrupted ? brief : std::max(brief, left));
  if (!cancelled && state.answered) observer_.transient_error(cancelled.error());
  return result;
}

Result<CancelReply> WaitLoop::cancel(const CancelCall& call, TimePoint until) {
  for (Millis backoff{0};;) {
    // Half of what is left, so that a silent connection leaves time for a fresh one.
    const TimePoint now = poller_.now();
    const TimePoint attempt_end =
        now + std::min<TimePoint::duration>(timing::kAcquireAttempt, (until - now) / 2);
    auto reply =
        finish(poller_, store_.cancel(call), attempt_end, store_.server(), Interruptible::no);
    if (reply || reply.error().retry == Retry::never) return reply;
    backoff = next_backoff(backoff);
    if (poller_.now() + backoff >= until) return reply;
    poller_.pause(poller_.now() + backoff, Interruptible::no);
  }
}

PollResult WaitLoop::drive_ticking(Request& request, TimePoint deadline) {
  if (observer_.tick_every() == Millis(0)) return poller_.drive(request, deadline);
  while (true) {
    const Millis next = std::max(Millis(1), observer_.tick_every());
    TimePoint tick = std::min(deadline, poller_.now() + next);
    PollResult driven = poller_.drive(request, tick);
    if (driven != PollResult::deadline || poller_.now() >= deadline) return driven;
    observer_.tick();
  }
}

// At least a millisecond, because 0 would mean forever to the server.
Millis WaitLoop::time_to_block(const WaitState& state, const Queued& queued) {
  const Millis jitter = timing::wait_jitter(state.slice);
  const Millis usual = random_between(state.slice - jitter, state.slice + jitter);
  Millis soonest = std::min(queued.look_again.value_or(usual), observer_.ask_again_after());
  // Nobody is woken when a lock that is held opens, so the last look keeps rlock from reporting a
  // closure that is over.
  const auto left = std::chrono::duration_cast<Millis>(state.limits.deadline - poller_.now());
  if (is_closure(queued.obstacle) && left > timing::kLastLook) {
    soonest = std::min(soonest, left - timing::kLastLook);
  }
  return std::max(Millis(1), std::min(usual, soonest));
}

Millis WaitLoop::poll_pause(const WaitState& state) {
  const auto slices = state.slice / timing::kWaitSlice;
  return random_between(timing::kPollPause * slices,
                        (timing::kPollPause + timing::kPollPauseSpread) * slices);
}

// The server may have restarted and cut off all waiters at the same moment. Idle waiters return
// over a whole slice, two of which may pass within their heartbeat.
Millis WaitLoop::pause_after_cut(const WaitState& state) {
  return random_between(timing::kFirstPollPause,
                        state.is_idle() ? state.slice : timing::kFirstPollPause * 3 / 2);
}

// Idle waiters return within their heartbeat even after a second pause.
Millis WaitLoop::pause_after_failure(const WaitState& state) {
  if (!state.is_idle()) return random_between(state.backoff / 2, state.backoff * 3 / 2);
  return random_between(state.slice / 4, state.slice * 3 / 4);
}

// Random, to avoid a thundering herd.
Millis WaitLoop::random_between(Millis least, Millis most) {
  const auto width = static_cast<uint64_t>((most - least).count()) + 1;
  return least + Millis(static_cast<Millis::rep>(random_.next() % width));
}

}  // namespace rlock::lock
