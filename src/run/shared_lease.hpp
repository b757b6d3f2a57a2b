#pragma once

#include <mutex>
#include <optional>

#include "lock/lease.hpp"
#include "lock/store.hpp"
#include "run/run.hpp"
#include "run/shared_state.hpp"

namespace rlock::run {

// The lease as both threads of rlock see it, and through the shared state the guard: the renewal
// thread moves it, the main thread acts on it. Every call is one short critical section.
class SharedLease {
 public:
  // What the main thread has to know to decide.
  struct View {
    TimePoint terminate_at;
    TimePoint kill_at;
    TimePoint deadline;
    std::optional<lock::Lost> lost;
    std::optional<Error> last_error;  // of the last renewal, when that failed
  };

  // `granted_at`: before the request was sent that was granted; its answer has just come.
  // `guard_state` learns when the guard has to kill; none where a lost lease ends no command.
  SharedLease(const lock::LeaseMonitor::Settings& settings, TimePoint granted_at,
              SharedState* guard_state);

  void renewed(TimePoint sent_at, TimePoint answered_at);
  void failed(TimePoint sent_at, TimePoint now, Error why);
  void lost(lock::Lost how);
  void complete_grant(TimePoint now);

  TimePoint next_attempt() const;
  TimePoint attempt_deadline(TimePoint sent_at) const;
  View view() const;
  // Whether the command is ended before the lease is over.
  bool ends_command() const { return guard_state_ != nullptr; }

 private:
  void publish();

  mutable std::mutex mutex_;
  lock::LeaseMonitor monitor_;
  std::optional<lock::Lost> lost_;
  std::optional<Error> last_error_;
  SharedState* const guard_state_;
};

}  // namespace rlock::run
