#pragma once

#include <algorithm>

#include "util/clock.hpp"

// Every time that the lock and a run under it keep, and each that is a part of the ttl, with its
// reason. What belongs to the connection to one server (resolver, TLS, sentinels) is kept in
// src/redis.
namespace rlock::timing {

// ---- the lease: see docs/SUPERVISION.md, "Lease deadlines" ----

// By how much the server may count a lease shorter than this host: its clock may run 1 % faster,
// and it counts whole milliseconds.
constexpr Millis drift(Millis ttl) {
  return ttl / 100 + Millis(2);
}
// How early the kill comes before the deadline: timers of a nice-19 process came up to 1.2 s late.
// The guard, which acts only if rlock does not, has half of it.
constexpr Millis kill_margin(Millis ttl) {
  return std::clamp(ttl / 5, Millis(250), Millis(2000));
}
constexpr Millis guard_margin(Millis ttl) {
  return kill_margin(ttl) / 2;
}
// By how much more the guard may be ahead beside a tree of thousands, which takes its time to die.
constexpr Millis large_tree_margin(Millis ttl) {
  return std::min(ttl * 3 / 10, Millis(5000));
}
// What the command has of each lease before TERM, whatever --kill-after says; also the least that
// must be left of a lease that a command starts under.
constexpr Millis usable_lease(Millis ttl) {
  return ttl / 2;
}
// From one renewal to the next: two more fit in before the lease ends.
constexpr Millis renew_interval(Millis ttl) {
  return ttl / 3;
}
// How long a renewal may take, at least: shorter ones would give up what is only a little slow.
constexpr Millis least_renewal(Millis ttl) {
  return std::min(Millis(2000), ttl / 6);
}
// By the server's last answer a renewal may take longer, but other tries must fit in.
constexpr Millis longest_expected_answer(Millis ttl) {
  return ttl / 3;
}
// Between renewals that failed: doubled from the first on.
inline constexpr Millis kFirstRenewBackoff{10};
constexpr Millis longest_renew_backoff(Millis ttl) {
  return std::min(Millis(500), ttl / 20);
}
// Some servers of a quorum have not confirmed a grant: from the first renewal that brings it to
// them to the second; doubled until renewals come as usual.
inline constexpr Millis kFirstCompletion{1000};

// ---- waiting for the lock ----

// How long a waiter near the head blocks at the server before it asks again, give or take the
// jitter, so that waiters do not come in step. A third of the server's heartbeat (15 s): two may be
// lost. To one that is farther back the server gives a longer slice and a longer heartbeat.
inline constexpr Millis kWaitSlice{5000};
constexpr Millis wait_jitter(Millis slice) {
  return slice / 10;
}
// Of what a server says, no more than this is believed.
inline constexpr Millis kLongestWaitSlice{20'000};
// A connection that stays silent for so much longer than the slice is given up.
inline constexpr Millis kWaitReplyGrace{1000};
// For one request of a waiter, once the server has answered before.
inline constexpr Millis kAcquireAttempt{2000};
// A connection gives up at the same moment as the first contact does, and its error says more.
inline constexpr Millis kConnectErrorGrace{20};
// Between requests that failed: doubled.
inline constexpr Millis kFirstAcquireBackoff{20};
inline constexpr Millis kLongestAcquireBackoff{1000};
// A server may refuse to let a waiter block, or answer at once. The first time that may pass; then
// the waiter asks so seldom that it costs the server five commands a second at most, connecting
// included, and often enough to claim a grant (2 s) in time.
inline constexpr Millis kFirstPollPause{200};
inline constexpr Millis kPollPause{1000};
inline constexpr Millis kPollPauseSpread{300};
// A round of asking and waiting that is shorter counts as one that brought nothing.
inline constexpr Millis kBriefRound{200};

// ---- cancelling and releasing ----

// After a wait: as long as that may still last, and no longer than this.
inline constexpr Millis kCancelTime{5000};
// When the wait is over, after a signal, and where no server ever answered: enough for a server
// that answers. What one that does not may keep ends with the heartbeat.
inline constexpr Millis kShortCancelTime{500};
// A grant that came too late or with a signal.
inline constexpr Millis kUnusedGrantCancelTime{5000};
// The release after the command: until the lease ends, within these. The server may count longer
// than we dare to, so one round trip is worth it also when our lease is over.
inline constexpr Millis kShortestRelease{250};
inline constexpr Millis kLongestRelease{5000};
// For one request of a release; doubled where the server may just be slow.
inline constexpr Millis kFirstReleaseAttempt{1000};
// Between requests that failed: doubled.
inline constexpr Millis kFirstReleasePause{10};
inline constexpr Millis kLongestReleasePause{250};

// ---- quorum: see docs/PROTOCOL.md, "Quorum" ----

// The longest lease: for so long a server that lost its memory is not counted.
inline constexpr Millis kLongestQuorumLease{60'000};
// By how much a server's clock may be ahead of another's before that one doubts its tokens.
inline constexpr Millis kLongestClockGap{60'000};
// The longest that one server is waited for.
constexpr Millis server_limit(Millis ttl) {
  return std::clamp(ttl / 20, Millis(50), Millis(2000));
}
// A majority has answered, and its answers leave it open: a slow server gets as long again as that
// took, and at least this.
inline constexpr Millis kLeastStragglerGrace{10};
// A majority that granted the lock has as long to confirm it as it took for that, and at least
// this; then the others are asked, too.
inline constexpr Millis kLeastConfirmTime{1};
// Where each answer counts: after a majority has answered.
inline constexpr Millis kStragglerTime{100};
// After a try in which nobody got a majority: up to three times this, doubled with each such try in
// a row. Never fast enough to spin, never in step with a contender.
inline constexpr Millis kTiePause{5};
// A try that failed waits so long for its cancels: what was sent is on its way by then.
inline constexpr Millis kTryCancelTime{50};
inline constexpr Millis kQuorumReleaseLimit{1000};
inline constexpr Millis kQuorumInspectLimit{2000};
// The releases of one holder come to all servers within a moment; a grant at fewer than a majority
// would only have to be cancelled.
inline constexpr Millis kMoreWakesTime{25};
// How long a server lets one wait block, so that a short wait does not cost it a command.
inline constexpr Millis kLeastBlockTime{5000};

// ---- nested runs ----

// The longest lease of a nested run, whatever was asked for: the scripts see to it, too.
inline constexpr Millis kLongestNestedLease{30'000};
inline constexpr Millis kEntryPause{20};  // between requests that failed
inline constexpr Millis kEntryReleaseTime{500};
// Between looks whether an outer run has put its lease back.
inline constexpr Millis kPutBackLook{250};

// ---- the renewal thread ----

// Most commands are shorter: they get no thread.
inline constexpr Millis kThreadAfter{50};
inline constexpr Millis kThreadRetry{100};
// A short command need not notice operators: the second connection waits for this.
inline constexpr Millis kListenAfter{1000};
inline constexpr Millis kListenSlice{30'000};
inline constexpr Millis kListenGrace{5000};  // for the answer to a slice that is over
inline constexpr Millis kFirstListenBackoff{250};
inline constexpr Millis kLongestListenBackoff{15'000};

// ---- the background renewer ----

// To start its thread: one that takes longer is stopped or starved.
inline constexpr Millis kRenewerStart{5000};
// Between looks at the watched process, where no descriptor reports its end.
inline constexpr Millis kWatchLook{1000};
// For a request also when hardly anything is left of the lease.
inline constexpr Millis kShortestRequest{1000};

// ---- ending the command ----

// Locking memory at once costs the start of every run 0.2 ms; short commands never need it.
inline constexpr Millis kGuardSettle{50};
// Between looks at another user's processes, whose end is not announced.
inline constexpr Millis kRefusedLook{500};
// The lease is over and rlock is gone: how long a guard beside processes of which none dies any
// more goes on. It has nobody to report to.
inline constexpr Millis kOrphanedGuardTime{5000};
// A guard that makes no progress with an ending for so long is stopped or starved.
inline constexpr Millis kGuardProgress{50};
// A walk through the command's processes that only looks takes no longer.
inline constexpr Millis kWalkTime{50};
// One that passes a signal on: whom it does not reach is not asked to end. It never goes on when
// the command has to be killed.
inline constexpr Millis kSignalTime{5000};
// For reaping the dead, while others are still to be killed; among thousands a look at each takes
// longer.
inline constexpr Millis kReapTime{2};
inline constexpr Millis kLongReapTime{100};
// Where nobody dies any more, a walk that kills may take longer than a round.
inline constexpr Millis kDeepWalk{500};
// One round of killing, before its caller looks after other things again.
inline constexpr Millis kKillRound{20};
// What a process takes to die, on a small machine that has other things to do.
inline constexpr Nanos kDeathTime{200'000};
// For counting the processes of the tree: with more than that the margin is the largest.
inline constexpr Millis kCountTime{100};
// Between rounds, doubled: what was killed needs a moment to die.
inline constexpr Millis kFirstKillPause{1};
inline constexpr Millis kLongestKillPause{16};
// When no process has died for so long, those that are left hang in the kernel: from then on a
// round comes this often.
inline constexpr Millis kDyingTime{1000};
inline constexpr Millis kStuckPause{500};
// The kernel kills all in a namespace at once, but on a busy machine it takes seconds to take
// thousands of dead processes away; what is left after this time hangs in the kernel.
inline constexpr Millis kNamespaceDyingTime{10'000};
// The lease is lost and over: how long what does not die of KILL is waited for before it is
// reported.
inline constexpr Millis kLostDyingTime{5000};
// Between reports of what cannot be ended: doubled.
inline constexpr Millis kFirstReport{60'000};
inline constexpr Millis kLongestReport{3'600'000};

}  // namespace rlock::timing
