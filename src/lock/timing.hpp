#pragma once

#include <algorithm>

#include "util/clock.hpp"

// The durations of the lock and of a run under it, and the parts of the ttl, with their reasons.
// Those of the connection to one server (resolver, TLS, sentinels) are in src/redis.
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
// How much earlier the guard kills a tree of thousands of processes, which take their time to die.
constexpr Millis large_tree_margin(Millis ttl) {
  return std::min(ttl * 3 / 10, Millis(5000));
}
// The part of each lease that the command has before TERM, whatever --kill-after says; also the
// least that must be left of a lease when a command starts.
constexpr Millis usable_lease(Millis ttl) {
  return ttl / 2;
}
// From one renewal to the next: two more fit in before the lease ends. A long lease is renewed as
// often as one of 30 s, so that most of it is left when an outage of the server begins.
inline constexpr Millis kLongestRenewInterval{10'000};
constexpr Millis renew_interval(Millis ttl) {
  return std::min(ttl / 3, kLongestRenewInterval);
}
// The least time limit of a renewal: a shorter one would give up a server that is only a little
// slow.
constexpr Millis least_renewal(Millis ttl) {
  return std::min(Millis(2000), ttl / 6);
}
// The limit grows with the server's last answer, but other attempts must fit in.
constexpr Millis longest_expected_answer(Millis ttl) {
  return ttl / 3;
}
// The back-off between failed renewals, doubled each time. After the end of the lease nothing is
// urgent.
inline constexpr Millis kFirstRenewBackoff{10};
inline constexpr Millis kLongestRenewBackoff{500};
constexpr Millis longest_renew_backoff(Millis ttl) {
  return std::min(kLongestRenewBackoff, ttl / 20);
}
// By how much a renewal may come later than the end of an outage: the network drops the packet of
// an attempt, which sends it again after a second or is given up, and the back-off passes.
constexpr Millis renewal_after_outage(Millis ttl) {
  return std::min(Millis(1000), least_renewal(ttl)) + longest_renew_backoff(ttl);
}
// The interval between the first renewals while servers of a quorum have not confirmed a grant, or
// a failover may have lost it; doubled until renewals come as usual.
inline constexpr Millis kFirstCompletion{1000};

// ---- waiting for the lock ----

// How long a waiter near the head blocks at the server before it asks again, with a jitter so that
// waiters do not come in step. It is a third of the server's heartbeat (15 s), so that two requests
// may be lost. The server gives a waiter farther back a longer slice and a longer heartbeat.
inline constexpr Millis kWaitSlice{5000};
constexpr Millis wait_jitter(Millis slice) {
  return slice / 10;
}
// The longest slice that is accepted from a server.
inline constexpr Millis kLongestWaitSlice{20'000};
// A connection that is silent for this much longer than the slice is given up.
inline constexpr Millis kWaitReplyGrace{1000};
// The time limit of a waiter's request after the server's first answer.
inline constexpr Millis kAcquireAttempt{2000};
// The connection times out at the same moment as the first contact; its error explains more, so the
// first contact waits a little longer.
inline constexpr Millis kConnectErrorGrace{20};
// Between requests that failed: doubled.
inline constexpr Millis kFirstAcquireBackoff{20};
inline constexpr Millis kLongestAcquireBackoff{1000};
// Between requests while a failover is under way, which takes about a second.
inline constexpr Millis kFailoverPause{100};
// A server may refuse to let a waiter block, or answer at once. After the first time the waiter
// polls: rarely enough for at most five commands a second, connecting included, and often enough to
// claim a grant (2 s) in time.
inline constexpr Millis kFirstPollPause{200};
inline constexpr Millis kPollPause{1000};
inline constexpr Millis kPollPauseSpread{300};
// In a shorter round of asking and waiting the server did not let the waiter block, as it seems.
inline constexpr Millis kBriefRound{200};

// ---- cancelling and releasing ----

// The limit of a cancel after a wait, which also ends with the time of the wait.
inline constexpr Millis kCancelTime{5000};
// The limit of a cancel when the wait is over, after a signal, or if no server ever answered. It
// suffices for a server that answers; what another one keeps ends with the heartbeat.
inline constexpr Millis kShortCancelTime{500};
// The limit for the release of a grant that came too late or with a signal.
inline constexpr Millis kUnusedGrantCancelTime{5000};
// The release after the command is tried until the lease ends, within these bounds. The server may
// count the lease longer than rlock does, so one round trip is worth it even after its end.
inline constexpr Millis kShortestRelease{250};
inline constexpr Millis kLongestRelease{5000};
// For one request of a release; doubled where the server may just be slow.
inline constexpr Millis kFirstReleaseAttempt{1000};
// Between requests that failed: doubled.
inline constexpr Millis kFirstReleasePause{10};
inline constexpr Millis kLongestReleasePause{250};

// ---- replicas: see docs/PROTOCOL.md, "Replicas" ----

// What replicas have to confirm a request: half of what a renewal may take.
constexpr Millis confirmation_time(Millis ttl) {
  return least_renewal(ttl) / 2;
}
inline constexpr Millis kReleaseConfirmation = kFirstReleaseAttempt / 2;
// By how much the clock of a replica that becomes master may be ahead, which ends each lease
// earlier.
constexpr Millis replica_clock_gap(Millis ttl) {
  return std::min(Millis(1000), ttl / 10);
}

// ---- quorum: see docs/PROTOCOL.md, "Quorum" ----

// The longest lease: for so long a server that lost its memory is not counted.
inline constexpr Millis kLongestQuorumLease{60'000};
// By how much a server's clock may be ahead of another's before that one doubts its tokens.
inline constexpr Millis kLongestClockGap{60'000};
// The longest that one server is waited for.
constexpr Millis server_limit(Millis ttl) {
  return std::clamp(ttl / 20, Millis(50), Millis(2000));
}
// A majority has answered without a decision: the other servers get as long again as that took, and
// at least this.
inline constexpr Millis kLeastStragglerGrace{10};
// The majority that granted the lock has as long to confirm it as the grant took, and at least
// this. Then the other servers are asked, too.
inline constexpr Millis kLeastConfirmTime{1};
// How long the others are waited for after a majority, if each answer counts.
inline constexpr Millis kStragglerTime{100};
// The back-off after a split vote: one to three times this at random, doubled with each split in a
// row, so that contenders neither spin nor come in step.
inline constexpr Millis kTiePause{5};
// How long a failed attempt waits for its cancels, which are on their way by then.
inline constexpr Millis kTryCancelTime{50};
inline constexpr Millis kQuorumReleaseLimit{1000};
inline constexpr Millis kQuorumInspectLimit{2000};
// The releases of one holder come to all servers within a moment; a grant at fewer than a majority
// would only have to be cancelled.
inline constexpr Millis kMoreWakesTime{25};
// How long a server lets one wait block, so that a short wait does not cost it a command.
inline constexpr Millis kLeastBlockTime{5000};

// ---- nested runs ----

// The longest lease of a nested run, whatever was asked for: the scripts see to it, too. It is the
// usual lease of an outer run, so that both survive the same outage.
inline constexpr Millis kLongestNestedLease{60'000};
inline constexpr Millis kEntryPause{20};  // between requests that failed
inline constexpr Millis kEntryReleaseTime{500};
// Between looks whether an outer run has put its lease back.
inline constexpr Millis kPutBackLook{250};

// ---- the renewal thread ----

// Most commands are shorter: they get no thread.
inline constexpr Millis kThreadAfter{50};
inline constexpr Millis kThreadRetry{100};
// The rounds of the thread that one request may need: of nine servers, each with a login over TLS
// and a script to load. Each one more is followed by a pause, so that a descriptor which is
// readable for ever does not occupy a processor at a real-time priority.
inline constexpr unsigned kRoundsARequest = 200;
inline constexpr Millis kIdleRoundPause{50};
// A short command need not notice operators: the second connection waits for this.
inline constexpr Millis kListenAfter{1000};
inline constexpr Millis kListenSlice{30'000};
inline constexpr Millis kListenGrace{5000};  // for the answer to a slice that is over
inline constexpr Millis kFirstListenBackoff{250};
inline constexpr Millis kLongestListenBackoff{15'000};

// ---- the background renewer ----

// The time for the start of its thread; a process that takes longer is stopped or starved.
inline constexpr Millis kRenewerStart{5000};
// Between looks at the watched process, where no descriptor reports its end.
inline constexpr Millis kWatchLook{1000};
// The least time for a request when the lease is nearly over.
inline constexpr Millis kShortestRequest{1000};

// ---- ending the command ----

// A command still running after a request to stop is reported after --kill-after, but not earlier.
inline constexpr Millis kUnheededAfter{1000};
// Requests to stop within this time of the first one are one request: timeout(1) sends two, GNU
// parallel three.
inline constexpr Millis kOneRequest{500};
// Locking memory at once costs the start of every run 0.2 ms; short commands never need it.
inline constexpr Millis kGuardSettle{50};
// The interval between looks at processes of other users, whose end no event reports.
inline constexpr Millis kRefusedLook{500};
// How long a guard continues when rlock is gone, the lease has expired and no process dies any
// more. It can report to no process.
inline constexpr Millis kOrphanedGuardTime{5000};
// A guard that makes no progress with an ending for so long is stopped or starved.
inline constexpr Millis kGuardProgress{50};
// The limit of a walk through the command's processes that only looks.
inline constexpr Millis kWalkTime{50};
// The limit of a walk that passes a signal on; processes that it does not reach do not get the
// signal. It stops when the command has to be killed.
inline constexpr Millis kSignalTime{5000};
// The limit of reaping while others are still to be killed: a look at each of thousands takes
// longer.
inline constexpr Millis kReapTime{2};
inline constexpr Millis kLongReapTime{100};
// When no process dies any more, a walk that kills may take longer than a round.
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
// The kernel kills all processes of a namespace at once, but on a busy machine it needs seconds to
// remove thousands of dead ones. What is left after this time hangs in the kernel.
inline constexpr Millis kNamespaceDyingTime{10'000};
// After the end of a lost lease: how long processes that do not die of KILL are waited for before
// they are reported.
inline constexpr Millis kLostDyingTime{5000};
// Between reports of what cannot be ended: doubled.
inline constexpr Millis kFirstReport{60'000};
inline constexpr Millis kLongestReport{3'600'000};

}  // namespace rlock::timing
