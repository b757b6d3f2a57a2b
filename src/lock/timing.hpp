#pragma once

#include <algorithm>

#include "util/clock.hpp"

// The durations of the lock and of a run under it, and the parts of the ttl, with their reasons.
// The durations of the connection to one server (resolver, TLS, sentinels) are in src/redis.
namespace rlock::timing {

// ---- the lease: see docs/SUPERVISION.md, "Lease deadlines" ----

// How much shorter the server may count a lease than this host: its clock may run 1 % faster, and
// it counts whole milliseconds.
constexpr Millis drift(Millis ttl) {
  return ttl / 100 + Millis(2);
}
// How early KILL comes before the deadline: timers of a nice-19 process came up to 1.2 s late. The
// guard, which acts only if rlock does not, uses half of it.
constexpr Millis kill_margin(Millis ttl) {
  return std::clamp(ttl / 5, Millis(250), Millis(2000));
}
constexpr Millis guard_margin(Millis ttl) {
  return kill_margin(ttl) / 2;
}
// How much earlier the guard kills a tree of thousands of processes, because they need time to die.
constexpr Millis large_tree_margin(Millis ttl) {
  return std::min(ttl * 3 / 10, Millis(5000));
}
// The part of each lease that the command has before TERM, whatever --kill-after says. Also the
// least that must be left of a lease when a command starts.
constexpr Millis usable_lease(Millis ttl) {
  return ttl / 2;
}
// The interval between renewals: two more fit in before the lease expires. A long lease is renewed
// as often as a lease of 30 s, so that most of it is left when a server outage begins.
inline constexpr Millis kLongestRenewInterval{10'000};
constexpr Millis renew_interval(Millis ttl) {
  return std::min(ttl / 3, kLongestRenewInterval);
}
// The shortest time limit of a renewal: a shorter limit would give up a server that is only a
// little slow.
constexpr Millis least_renewal(Millis ttl) {
  return std::min(Millis(2000), ttl / 6);
}
// The limit grows with the server's last answer, but other attempts must fit in.
constexpr Millis longest_expected_answer(Millis ttl) {
  return ttl / 3;
}
// The backoff between failed renewals, doubled each time. After the lease has expired nothing is
// urgent.
inline constexpr Millis kFirstRenewBackoff{10};
inline constexpr Millis kLongestRenewBackoff{500};
constexpr Millis longest_renew_backoff(Millis ttl) {
  return std::min(kLongestRenewBackoff, ttl / 20);
}
// How much later than the end of an outage a renewal may succeed: the network drops the packet of
// an attempt, which is sent again after a second or given up, and the backoff passes.
constexpr Millis renewal_after_outage(Millis ttl) {
  return std::min(Millis(1000), least_renewal(ttl)) + longest_renew_backoff(ttl);
}
// The interval between the first renewals while servers of a quorum have not confirmed a grant, or
// a failover may have lost it. It doubles until renewals have their usual interval.
inline constexpr Millis kFirstCompletion{1000};

// ---- waiting for the lock ----

// How long a waiter near the head blocks at the server before it asks again, with a jitter so that
// waiters do not synchronise. It is a third of the server's heartbeat (15 s), so that two requests
// may be lost. The server gives a waiter farther back a longer slice and a longer heartbeat.
inline constexpr Millis kWaitSlice{5000};
constexpr Millis wait_jitter(Millis slice) {
  return slice / 10;
}
// How long before the end of a wait rlock asks again for a lock that was closed.
inline constexpr Millis kLastLook{200};
// The longest slice that rlock accepts from a server.
inline constexpr Millis kLongestWaitSlice{20'000};
// How long after the end of the slice rlock gives up a silent connection.
inline constexpr Millis kWaitReplyGrace{1000};
// The time limit of a waiter's request after the server's first answer.
inline constexpr Millis kAcquireAttempt{2000};
// How much longer the first contact waits than the connection. Both time out at the same moment,
// but the connection's error explains more.
inline constexpr Millis kConnectErrorGrace{20};
// The pause between failed requests; it doubles each time.
inline constexpr Millis kFirstAcquireBackoff{20};
inline constexpr Millis kLongestAcquireBackoff{1000};
// The pause between requests while a failover is in progress, which takes about a second.
inline constexpr Millis kFailoverPause{100};
// The pause of a waiter that polls, because a server may refuse to let it block, or answer
// immediately. After the first time it polls rarely enough for at most five commands a second,
// connecting included, and often enough to claim a grant (2 s) in time.
inline constexpr Millis kFirstPollPause{200};
inline constexpr Millis kPollPause{1000};
inline constexpr Millis kPollPauseSpread{300};
// If a round of asking and waiting is shorter than this, the server probably did not let the waiter
// block.
inline constexpr Millis kBriefRound{200};

// ---- cancelling and releasing ----

// The limit of a cancel after a wait, which also ends with --wait.
inline constexpr Millis kCancelTime{5000};
// The limit of a cancel when --wait has expired, after a signal, or if no server ever answered. It
// suffices for a server that answers; what another server stores expires with the heartbeat.
inline constexpr Millis kShortCancelTime{500};
// The limit for the release of a grant that came too late or together with a signal.
inline constexpr Millis kUnusedGrantCancelTime{5000};
// rlock tries to release after the command until the lease expires, within these bounds. The server
// may count the lease longer than rlock does, so one round trip is useful even after its end.
inline constexpr Millis kShortestRelease{250};
inline constexpr Millis kLongestRelease{5000};
// The limit of one request of a release; it doubles if the server may just be slow.
inline constexpr Millis kFirstReleaseAttempt{1000};
// The pause between failed requests; it doubles each time.
inline constexpr Millis kFirstReleasePause{10};
inline constexpr Millis kLongestReleasePause{250};

// ---- replicas: see docs/PROTOCOL.md, "Replicas" ----

// How long replicas may take to confirm a request: half of what a renewal may take.
constexpr Millis confirmation_time(Millis ttl) {
  return least_renewal(ttl) / 2;
}
inline constexpr Millis kReleaseConfirmation = kFirstReleaseAttempt / 2;
// How far the clock of a replica that becomes master may be ahead, which expires each lease
// earlier.
constexpr Millis replica_clock_gap(Millis ttl) {
  return std::min(Millis(1000), ttl / 10);
}

// ---- Sentinel: see docs/PROTOCOL.md, "Sentinel" ----

// How long a check for a failover may wait for sentinels that the majority does not need. It is
// shorter than kAcquireAttempt, after which a grant does not count, and leaves a short lease time
// for its first renewal.
inline constexpr Millis kLongestFailoverCheck{1500};
constexpr Millis failover_check(Millis ttl) {
  return std::min(kLongestFailoverCheck, ttl / 6);
}

// ---- quorum: see docs/PROTOCOL.md, "Quorum" ----

// The longest lease; for this time a server that lost its memory is not counted.
inline constexpr Millis kLongestQuorumLease{60'000};
// How far a server's clock may be ahead of another server's before that one doubts its tokens.
inline constexpr Millis kLongestClockGap{60'000};
// The longest time for which a request waits for one server.
constexpr Millis server_limit(Millis ttl) {
  return std::clamp(ttl / 20, Millis(50), Millis(2000));
}
// If a majority has answered without a decision, the other servers get as long again as that took,
// and at least this time.
inline constexpr Millis kLeastStragglerGrace{10};
// The majority that granted the lock has as long to confirm it as the grant took, and at least this
// time. After that the other servers are asked, too.
inline constexpr Millis kLeastConfirmTime{1};
// How long a request waits for the others after a majority, if each answer counts.
inline constexpr Millis kStragglerTime{100};
// The backoff after a split vote: one to three times this at random, doubled with each consecutive
// split, so that contenders neither spin nor synchronise.
inline constexpr Millis kTiePause{5};
// How long a failed attempt waits for its cancels, which have been sent by then.
inline constexpr Millis kTryCancelTime{50};
inline constexpr Millis kQuorumReleaseLimit{1000};
inline constexpr Millis kQuorumInspectLimit{2000};
// How long to wait for more wakes: the releases of one holder reach all servers within a moment,
// and a grant at less than a majority would only have to be cancelled.
inline constexpr Millis kMoreWakesTime{25};
// How long a server lets one wait block, so that a short wait does not cost it an extra command.
inline constexpr Millis kLeastBlockTime{5000};

// ---- nested runs ----

// The longest lease of a nested run, whatever was requested; the scripts enforce it, too. It is the
// usual lease of an outer run, so that both survive the same outage.
inline constexpr Millis kLongestNestedLease{60'000};
inline constexpr Millis kEntryPause{20};  // pause between failed requests
inline constexpr Millis kEntryReleaseTime{500};
// The interval between checks whether an outer run has restored its lease.
inline constexpr Millis kRestoreLook{250};

// ---- the renewal thread ----

// When the renewal thread starts: most commands are shorter, and get no thread.
inline constexpr Millis kThreadAfter{50};
inline constexpr Millis kThreadRetry{100};
// How many rounds of the thread one request may need: nine servers, each with a login over TLS and
// a script to load. Each further round is followed by a pause, so that a descriptor which is always
// readable does not occupy a processor at a real-time priority.
inline constexpr unsigned kRoundsARequest = 200;
inline constexpr Millis kIdleRoundPause{50};
// When the second connection opens: a short command need not notice operators.
inline constexpr Millis kListenAfter{1000};
inline constexpr Millis kListenSlice{30'000};
inline constexpr Millis kListenGrace{5000};  // grace for the answer to a slice that is over
inline constexpr Millis kFirstListenBackoff{250};
inline constexpr Millis kLongestListenBackoff{15'000};

// ---- the background renewer ----

// The time for its thread to start; a process that takes longer is stopped or starved.
inline constexpr Millis kRenewerStart{5000};
// The interval between checks of the watched process, if no descriptor reports its exit.
inline constexpr Millis kWatchLook{1000};
// The least time for a request when the lease is nearly over.
inline constexpr Millis kShortestRequest{1000};

// ---- stopping the command ----

// rlock reports a command that is still running after a request to stop after --kill-after, but not
// earlier than this.
inline constexpr Millis kUnheededAfter{1000};
// Requests to stop within this time of the first one count as one: timeout(1) sends two, GNU
// parallel three.
inline constexpr Millis kOneRequest{500};
// When the guard locks its memory: doing it at the start would cost every run 0.2 ms, and short
// commands never need it.
inline constexpr Millis kGuardSettle{50};
// The interval between checks of processes of other users, whose exit no event reports.
inline constexpr Millis kRefusedLook{500};
// How long a guard continues when rlock is gone, the lease has expired and no more processes die.
// It cannot report to any process.
inline constexpr Millis kOrphanedGuardTime{5000};
// A guard that makes no progress with stopping the tree for this time is stopped or starved.
inline constexpr Millis kGuardProgress{50};
// The limit of a walk through the command's processes that only inspects them.
inline constexpr Millis kWalkTime{50};
// The limit of a walk that passes a signal on; processes that it does not reach do not get the
// signal. It stops when the command has to be killed.
inline constexpr Millis kSignalTime{5000};
// The limit of reaping while others are still to be killed, because inspecting each of thousands
// takes longer.
inline constexpr Millis kReapTime{2};
inline constexpr Millis kLongReapTime{100};
// How long a walk that kills may take when no more processes die; then it may exceed a round.
inline constexpr Millis kDeepWalk{500};
// The length of one round of killing, before its caller does other work again.
inline constexpr Millis kKillRound{20};
// How long a process takes to die on a small, busy machine.
inline constexpr Nanos kDeathTime{200'000};
// How much longer for each ancestor whose memory it is a copy of, because the kernel removes each
// page range from all of them.
inline constexpr Nanos kCopyDeathTime{50'000};
// The limit for counting the processes of the tree; if it takes longer, the margin is the largest.
inline constexpr Millis kCountTime{100};
// The pause between rounds, doubled each time, because killed processes need a moment to die.
inline constexpr Millis kFirstKillPause{1};
inline constexpr Millis kLongestKillPause{16};
// If no process has died for this time, the remaining ones hang in the kernel; from then on this is
// the interval between rounds.
inline constexpr Millis kDyingTime{1000};
inline constexpr Millis kStuckPause{500};
// The kernel kills all processes of a namespace at the same moment, but on a busy machine it needs
// seconds to remove thousands of dead ones. Processes left after this time hang in the kernel.
inline constexpr Millis kNamespaceDyingTime{10'000};
// After a lost lease has expired: how long rlock waits for processes that do not die of KILL before
// it reports them.
inline constexpr Millis kLostDyingTime{5000};
// The interval between reports of processes that rlock cannot stop; it doubles each time.
inline constexpr Millis kFirstReport{60'000};
inline constexpr Millis kLongestReport{3'600'000};

}  // namespace rlock::timing
