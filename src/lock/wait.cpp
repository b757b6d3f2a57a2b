#include "lock/wait.hpp"

#include "util/mutant.hpp"

#include <algorithm>
#include <utility>

namespace rlock::lock {
namespace {

using util::Error;
using util::ErrorKind;
using util::Result;

constexpr Millis kSlice{5000};
constexpr Millis kJitter{500};
// A connection that stays silent for longer than the slice is given up.
constexpr Millis kSilence{1000};
constexpr Millis kAttempt{2000};
// A connection gives up at the same moment as the first contact does, and says more.
constexpr Millis kLastWord{20};
constexpr Millis kFirstBackoff{20};
constexpr Millis kLongestBackoff{1000};
// A server may refuse to let a waiter block, or answer at once. The first time that may pass; then
// the waiter asks so seldom that it costs the server five commands a second at most, set-up
// included, and often enough to claim a grant in time.
constexpr Millis kFirstRest{200};
constexpr Millis kRest{1000};
constexpr Millis kRestSpread{300};
constexpr int kWarnAfter = 3;  // failed waits in a row
// Wakes that bring nothing come in small numbers.
constexpr Millis kBriefRound{200};
constexpr int kMostBriefRounds = 50;
constexpr int kMostSweeps = 1000;
// Giving back: as long as the wait may still last, and no longer than this.
constexpr Millis kGiveBack{5000};
// After that, after a signal, and where nothing was ever answered: time enough for a server that
// answers. What one that does not may keep ends with the heartbeat.
constexpr Millis kGiveBackBriefly{500};

Millis grown(Millis backoff) {
  return std::clamp(backoff * 2, kFirstBackoff, kLongestBackoff);
}

// Whether trying again cannot help. A password that was right may be about to change in its file.
bool is_hopeless(const Error& error, bool answered) {
  if (error.retry == util::Retry::later) {
    return error.kind != ErrorKind::unavailable && !(error.kind == ErrorKind::denied && answered);
  }
  return error.kind != ErrorKind::unavailable || !answered;
}

Error silent(const LockName& name, const std::string& server) {
  return {ErrorKind::unavailable,
          "cannot acquire \"" + name.text() + "\": " + server + ": no answer in time",
          util::Retry::later};
}

}  // namespace

Result<WaitResult> WaitLoop::acquire(AcquireCall call, const WaitLimits& limits) {
  Attempt attempt{std::move(call), limits, poller_.now(), {}, {}, {}};
  while (true) {
    if (auto result = step(attempt)) return std::move(*result);
  }
}

// The first answer has a time of its own, and one try is due to those who do not wait.
TimePoint WaitLoop::Attempt::ends(TimePoint sent_at) const {
  if (!answered) return started + limits.first_contact + kLastWord;
  return waits() ? std::min(limits.deadline, sent_at + kAttempt) : sent_at + kAttempt;
}

std::optional<Result<WaitResult>> WaitLoop::step(Attempt& attempt) {
  TimePoint sent_at = poller_.now();
  auto request = store_.acquire(attempt.call);
  Drive driven = drive_ticking(*request, attempt.ends(sent_at));
  if (driven == Drive::done) {
    auto reply = request->take();
    if (!reply) return recover(attempt, std::move(reply).error());
    attempt.answered = poller_.now();
    attempt.trouble.reset();
    attempt.backoff = Millis(0);
    return read(attempt, std::move(*reply), sent_at);
  }
  const util::Answered answered = request->answered();
  request.reset();
  if (driven == Drive::interrupted) return leave(attempt, WaitResult(Interrupted{}));
  const bool in_time = !attempt.trouble && attempt.answered && attempt.waits();
  if (in_time && poller_.now() >= attempt.limits.deadline) {
    return leave(attempt, WaitResult(TimedOut{attempt.holder}));
  }
  // The last try is cut short by the deadline: what an earlier one heard tells more.
  Error error = attempt.trouble.value_or(silent(attempt.call.name, store_.server()));
  error.answered = std::max(error.answered, answered);
  return recover(attempt, std::move(error));
}

std::optional<Result<WaitResult>> WaitLoop::read(Attempt& attempt, AcquireReply reply,
                                                 TimePoint sent_at) {
  if (auto* granted = std::get_if<Granted>(&reply)) {
    bool late = mutant(util::Mutant::deadline_from_reply);
    return WaitResult(Acquired{granted->token, late ? poller_.now() : sent_at,
                               granted->as.value_or(attempt.call.owner)});
  }
  if (auto* busy = std::get_if<Busy>(&reply)) return WaitResult(std::move(*busy));
  if (auto* gone = std::get_if<Gone>(&reply)) {
    // A revoked grant counts as held until its owner confirms: else the next one waits for its end.
    if (gone->ending == Ending::forced) return leave(attempt, WaitResult(std::move(*gone)));
    return WaitResult(std::move(*gone));
  }
  if (auto* queued = std::get_if<Queued>(&reply)) {
    attempt.call.ticket = queued->ticket;
    attempt.holder = queued->holder;
    observer_.queued(*queued);
    return wait(attempt, *queued);
  }
  // There was much to sweep. One try is due even to those who do not wait, but no server keeps us
  // for ever.
  TimePoint until =
      std::max(attempt.limits.deadline, attempt.started + attempt.limits.first_contact);
  if (poller_.now() >= until) return leave(attempt, WaitResult(TimedOut{attempt.holder}));
  if (++attempt.sweeps <= kMostSweeps) return std::nullopt;
  return rest(attempt, until, spread(kRest, kRest + kRestSpread));
}

std::optional<Result<WaitResult>> WaitLoop::wait(Attempt& attempt, const Queued& queued) {
  TimePoint now = poller_.now();
  TimePoint deadline = attempt.limits.deadline;
  if (now >= deadline) return leave(attempt, WaitResult(TimedOut{attempt.holder}));
  Millis blocked = slice(queued);
  auto request = store_.wait_for_wake(attempt.call.name, attempt.call.owner, blocked);
  Drive driven = drive_ticking(*request, std::min(deadline, now + blocked + kSilence));
  if (driven == Drive::done) {
    const TimePoint::duration took = poller_.now() - now;
    return waited(attempt, request->take(), std::chrono::duration_cast<Millis>(took));
  }
  request.reset();
  if (driven == Drive::interrupted) return leave(attempt, WaitResult(Interrupted{}));
  if (poller_.now() >= deadline) return leave(attempt, WaitResult(TimedOut{attempt.holder}));
  return std::nullopt;
}

// The server that has just given a place is there: what goes wrong in waiting costs no place.
std::optional<Result<WaitResult>> WaitLoop::waited(Attempt& attempt, Result<Wake> wake,
                                                   Millis took) {
  attempt.brief_rounds = took < kBriefRound ? attempt.brief_rounds + 1 : 0;
  if (wake) {
    attempt.failed_waits = 0;
    if (attempt.brief_rounds <= kMostBriefRounds) return std::nullopt;
    return rest(attempt, attempt.limits.deadline, spread(kRest, kRest + kRestSpread));
  }
  const ErrorKind kind = wake.error().kind;
  if (kind == ErrorKind::denied || kind == ErrorKind::foreign) {
    return recover(attempt, std::move(wake).error());
  }
  observer_.trouble(wake.error());
  if (took >= kRest) attempt.failed_waits = 0;
  if (++attempt.failed_waits == kWarnAfter && !std::exchange(attempt.must_poll, true)) {
    observer_.must_poll(wake.error());
  }
  const bool first = attempt.failed_waits == 1;
  return rest(attempt, attempt.limits.deadline,
              first ? spread(kFirstRest, kFirstRest * 3 / 2) : spread(kRest, kRest + kRestSpread));
}

std::optional<Result<WaitResult>> WaitLoop::rest(Attempt& attempt, TimePoint until, Millis pause) {
  if (poller_.pause(std::min(until, poller_.now() + pause)) == Drive::interrupted) {
    return leave(attempt, WaitResult(Interrupted{}));
  }
  if (poller_.now() >= until) return leave(attempt, WaitResult(TimedOut{attempt.holder}));
  return std::nullopt;
}

// A moment's trouble keeps the place in the queue; what cannot pass ends the acquisition.
std::optional<Result<WaitResult>> WaitLoop::recover(Attempt& attempt, Error error) {
  TimePoint now = poller_.now();
  if (attempt.answered) error.answered = util::Answered::yes;
  if (attempt.trouble) error.answered = std::max(error.answered, attempt.trouble->answered);
  TimePoint until = attempt.started + attempt.limits.first_contact;
  if (attempt.answered) {
    bool endless = attempt.limits.deadline == TimePoint::max();
    until = endless ? *attempt.answered + attempt.limits.outage : attempt.limits.deadline;
  }
  if (is_hopeless(error, attempt.answered.has_value()) || now >= until)
    return leave(attempt, std::move(error));
  observer_.trouble(error);
  attempt.trouble = std::move(error);
  attempt.backoff = grown(attempt.backoff);
  if (poller_.pause(std::min(until, now + attempt.backoff)) == Drive::interrupted) {
    return leave(attempt, WaitResult(Interrupted{}));
  }
  return std::nullopt;
}

// A request that failed may have been carried out all the same: whatever it took goes back.
// (L28, L46)
Result<WaitResult> WaitLoop::leave(const Attempt& attempt, Result<WaitResult> with) {
  CancelCall call{attempt.call.name, attempt.call.owner};
  if (with && std::holds_alternative<TimedOut>(*with)) call.how = CancelHow::timed_out;
  const TimePoint brief = poller_.now() + kGiveBackBriefly;
  const bool interrupted = with && std::holds_alternative<Interrupted>(*with);
  if (!attempt.answered && !interrupted) {
    (void)finish(poller_, store_.cancel(call), brief, store_.server(), Heed::nothing);
    return with;
  }
  const TimePoint left = std::min(attempt.limits.deadline, poller_.now() + kGiveBack);
  auto given = give_back(call, interrupted ? brief : std::max(brief, left));
  if (!given && attempt.answered) observer_.trouble(given.error());
  return with;
}

Result<CancelReply> WaitLoop::give_back(const CancelCall& call, TimePoint until) {
  for (Millis backoff{0};;) {
    // Half of what is left, so that a connection that went silent leaves time for a fresh one.
    const TimePoint now = poller_.now();
    const TimePoint attempt_end = now + std::min<TimePoint::duration>(kAttempt, (until - now) / 2);
    auto reply = finish(poller_, store_.cancel(call), attempt_end, store_.server(), Heed::nothing);
    if (reply || reply.error().retry == util::Retry::never) return reply;
    backoff = grown(backoff);
    if (poller_.now() + backoff >= until) return reply;
    poller_.pause(poller_.now() + backoff, Heed::nothing);
  }
}

Drive WaitLoop::drive_ticking(Request& request, TimePoint deadline) {
  if (observer_.tick_every() == Millis(0)) return poller_.drive(request, deadline);
  while (true) {
    const Millis next = std::max(Millis(1), observer_.tick_every());
    TimePoint tick = std::min(deadline, poller_.now() + next);
    Drive driven = poller_.drive(request, tick);
    if (driven != Drive::deadline || poller_.now() >= deadline) return driven;
    observer_.tick();
  }
}

// At least a millisecond: to the server, 0 would mean for ever.
Millis WaitLoop::slice(const Queued& queued) {
  Millis usual = spread(kSlice - kJitter, kSlice + kJitter);
  return std::max(Millis(1), std::min(usual, queued.look_again.value_or(usual)));
}

// At random, so that waiters do not come as a herd.
Millis WaitLoop::spread(Millis least, Millis most) {
  const auto width = static_cast<uint64_t>((most - least).count()) + 1;
  return least + Millis(static_cast<Millis::rep>(random_.next() % width));
}

}  // namespace rlock::lock
