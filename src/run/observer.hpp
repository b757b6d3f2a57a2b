// Runs in rlock, on both threads.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lock/wait.hpp"
#include "run/run_end.hpp"

// What a run reports while it lasts.
namespace rlock::run {

enum class EventKind {
  enqueued,
  acquired,
  entered,   // instead of acquired: an outer run holds the lock
  unlocked,  // instead of acquired: the command runs without the lock
  renewed,
  renew_failed,
  lost,
  terminating,
  killed,
  exited,
  released
};
struct Event {
  EventKind kind;
  TimePoint at;                        // CLOCK_BOOTTIME
  lock::Token token;                   // 0 until acquired
  std::string detail;                  // for people: why or how; may be hostile text
  std::optional<lock::Owner> owner{};  // with `acquired` and `entered`: the owner of this run
  std::optional<CommandEnd> end{};     // with `exited`
};

// The lock is granted, but too few replicas have confirmed it: the command starts when they do.
struct AwaitingReplicas {
  Error why;
};
// ^Z is about to stop rlock and its command. rlock stops the command for good after `left` unless
// both are resumed.
struct Suspending {
  Millis left;
};
// Renewals have failed for a while, most recently for this reason; `left` until rlock gives up the
// lease. Once for each outage; RenewedAgain ends it.
struct RenewalsFail {
  Error why;
  Millis left;
  bool ends_command;
};
struct RenewedAgain {
  Millis after;
};
// A lease was renewed at `server` after a connection broke, without an outage to report.
struct ConnectedAgain {
  std::string server;
};
// rlock cannot stop these processes, and renews the lock as long as they live. Repeated.
struct CannotStop {
  std::vector<std::string> survivors;
};
// The command is still running `after` rlock passed on a request to stop.
struct Unheeded {
  int signal = 0;
  Millis after{0};
  pid_t command = 0;  // 0: the command has exited, but rlock waits for its descendants
  std::optional<Millis> kill_in{};  // until rlock kills it (--stop-after); nullopt: it does not
};
// A TERM or INT came while rlock tries to release the lock; a second one ends the tries.
struct StillReleasing {};
// These processes ignored a hangup and keep running without the lock.
struct Exempted {
  std::vector<std::string> processes;
};
// A command that failed with this code left these processes, which keep running without the lock.
struct Leftovers {
  int code;
  std::vector<std::string> processes;
};
using Notification =
    std::variant<Event, AwaitingReplicas, Suspending, RenewalsFail, RenewedAgain, ConnectedAgain,
                 CannotStop, Unheeded, StillReleasing, Exempted, Leftovers>;

class Observer : public lock::WaitObserver {
 public:
  // Called from the main thread and from the renewal thread; implementations lock for themselves.
  virtual void on(const Notification&) {}
};

}  // namespace rlock::run
