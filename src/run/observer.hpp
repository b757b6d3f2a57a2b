// Runs in rlock, on both threads.
#pragma once

#include <optional>
#include <string>
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

// The command is still running `after` rlock passed on a request to stop.
struct Unheeded {
  int signal = 0;
  Millis after{0};
  pid_t command = 0;  // 0: the command has exited, but rlock waits for its descendants
  std::optional<Millis> kill_in{};  // until rlock kills it (--stop-after); nullopt: it does not
};

// Called from the main thread and from the renewal thread; implementations lock for themselves.
class Observer : public lock::WaitObserver {
 public:
  virtual void event(const Event&) {}
  // The lock is granted, but too few replicas have confirmed it: the command starts when they do.
  virtual void awaiting_replicas(const Error& /*why*/) {}
  // ^Z is about to stop rlock and its command. rlock stops the command for good after `left` unless
  // both are resumed.
  virtual void stopping(Millis /*left*/) {}
  // Renewals have failed for a while, most recently for this reason; `left` until rlock gives up
  // the lease. Called once for each outage; renewed_again() ends it.
  virtual void renewals_fail(const Error& /*why*/, Millis /*left*/, bool /*ends_command*/) {}
  virtual void renewed_again(Millis /*after*/) {}
  // A lease was renewed at `server` after a connection broke, without an outage to report.
  virtual void connected_again(const std::string& /*server*/) {}
  // rlock cannot stop these processes, and renews the lock as long as they live. Called repeatedly.
  virtual void cannot_end(const std::vector<std::string>& /*survivors*/) {}
  // A request to stop has had no effect so far.
  virtual void unheeded(const Unheeded&) {}
  // A TERM or INT came while rlock tries to release the lock; a second one ends the tries.
  virtual void still_releasing() {}
  // These processes ignored a hangup and keep running without the lock.
  virtual void exempted(const std::vector<std::string>& /*processes*/) {}
  // A command that failed with this code left these processes, which keep running without the lock.
  virtual void leftovers(int /*code*/, const std::vector<std::string>& /*processes*/) {}
};

}  // namespace rlock::run
