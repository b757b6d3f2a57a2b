#pragma once

#include "lock/timing.hpp"
#include "lock/types.hpp"

namespace rlock::lock {

// The latest moment at which a lease asked for at `sent_at` surely still stands: the server counts
// from a later moment, but its clock may run 1 % faster. [docs/SUPERVISION.md, "Lease deadlines"]
TimePoint lease_deadline(TimePoint sent_at, Millis ttl);

enum class Watchdog { renew, none };

// When to renew, when to give up: the holder's side of a lease as a pure state machine.
class LeaseMonitor {
 public:
  struct Settings {
    Millis ttl;
    Millis kill_after;  // from TERM to KILL; clamped so that half the lease is left before TERM
    Watchdog watchdog = Watchdog::renew;
    // By how much a replica that becomes master may count a lease shorter.
    Millis clock_gap{0};
  };

  // `granted_at`: before the request was sent that was granted. `answered_at`: when it was known.
  LeaseMonitor(const Settings& settings, TimePoint granted_at, TimePoint answered_at);

  void renewed(TimePoint sent_at, TimePoint answered_at);
  // The attempt that ended now failed; the next one comes after a small backoff.
  void failed(TimePoint sent_at, TimePoint now);

  // Some servers have not confirmed the grant, or a failover may have lost it: the next renewal,
  // which brings it to them, comes at `first`, the one after it a second later, and each further
  // one twice as late as the last, until they come as usual.
  void complete_grant(TimePoint first);

  TimePoint next_attempt() const { return next_attempt_; }
  // When a renewal without an answer is given up and retried over a fresh connection. The limit is
  // twice the time of the server's last answer, and doubles after each attempt that was given up,
  // so that a slow server costs no lease.
  TimePoint attempt_deadline(TimePoint sent_at) const;

  TimePoint deadline() const {
    return lease_deadline(sent_at_, settings_.ttl) - settings_.clock_gap;
  }
  TimePoint terminate_at() const;
  TimePoint kill_at() const { return deadline() - timing::kill_margin(settings_.ttl); }
  TimePoint guard_kill_at() const { return deadline() - timing::guard_margin(settings_.ttl); }
  // When the guard has to know at the latest how large the tree is.
  TimePoint guard_count_at() const {
    return guard_kill_at() - timing::large_tree_margin(settings_.ttl);
  }

 private:
  Millis renew_interval();

  Settings settings_;
  TimePoint sent_at_;
  TimePoint next_attempt_;
  Millis backoff_{0};
  Millis completion_pause_{0};  // while a grant is completed: until the next renewal
  Nanos answer_time_{0};        // what an attempt may take, by the last answer
  Nanos abandoned_time_{0};     // the same, by the last attempt that was given up since
};

// The longest outage of the server that a run always survives, in whole seconds if it is more than
// one: an outage begins when a renewal is due at the worst, and has to end in time for a renewal
// before TERM. For a run that renews its lease.
Millis survived_outage(const LeaseMonitor::Settings& settings);

}  // namespace rlock::lock
