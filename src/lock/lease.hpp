#pragma once

#include "lock/timing.hpp"
#include "lock/types.hpp"

namespace rlock::lock {

// The latest moment at which a lease that was requested at `sent_at` is certainly still valid: the
// server counts from a later moment, but its clock may run 1 % faster. [docs/SUPERVISION.md, "Lease
// deadlines"]
TimePoint lease_deadline(TimePoint sent_at, Millis ttl);

enum class Watchdog { renew, none };

// Decides when to renew and when to give up: the holder's side of a lease as a pure state machine.
class LeaseMonitor {
 public:
  struct Settings {
    Millis ttl;
    Millis kill_after;  // from TERM to KILL; limited so that half of the lease is left before TERM
    Watchdog watchdog = Watchdog::renew;
    // How much shorter a replica that becomes master may count a lease.
    Millis clock_gap{0};
  };

  // `granted_at`: before the granted request was sent. `answered_at`: when its answer was known.
  LeaseMonitor(const Settings& settings, TimePoint granted_at, TimePoint answered_at);

  void renewed(TimePoint sent_at, TimePoint answered_at);
  // Records that an attempt has just failed. The next attempt follows after a short backoff.
  void failed(TimePoint sent_at, TimePoint now);

  // Some servers have not confirmed the grant, or a failover may have lost it. The next renewal,
  // which brings the grant to them, is due at `first`, the following one a second later, and each
  // further renewal after twice the previous interval, until the usual interval is reached.
  void complete_grant(TimePoint first);

  TimePoint next_attempt() const { return next_attempt_; }
  // When to give up a renewal without an answer and retry it over a fresh connection. The limit is
  // twice the time of the server's last answer, and doubles after each attempt that was given up,
  // so that a slow server does not cost the lease.
  TimePoint attempt_deadline(TimePoint sent_at) const;

  TimePoint deadline() const {
    return lease_deadline(sent_at_, settings_.ttl) - settings_.clock_gap;
  }
  TimePoint terminate_at() const;
  TimePoint kill_at() const { return deadline() - timing::kill_margin(settings_.ttl); }
  TimePoint guard_kill_at() const { return deadline() - timing::guard_margin(settings_.ttl); }
  // The latest time at which the guard has to know the size of the tree.
  TimePoint guard_count_at() const {
    return guard_kill_at() - timing::large_tree_margin(settings_.ttl);
  }

 private:
  Millis renew_interval();

  Settings settings_;
  TimePoint sent_at_;
  TimePoint next_attempt_;
  Millis backoff_{0};
  Millis completion_pause_{0};  // until the next renewal, while a grant is completed
  Nanos answer_time_{0};        // what an attempt may take, from the last answer
  Nanos abandoned_time_{0};     // the same, from the last attempt that was given up since
};

// The longest server outage that a run always survives, for a run that renews its lease; in whole
// seconds above one second. In the worst case an outage begins when a renewal is due, and it has to
// end in time for a renewal before TERM.
Millis survived_outage(const LeaseMonitor::Settings& settings);

}  // namespace rlock::lock
