// BackgroundRenewer runs in `rlock acquire`, the rest in the process that it leaves behind.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "lock/inspector.hpp"
#include "run/run.hpp"
#include "run/signals.hpp"
#include "util/fd.hpp"
#include "util/process.hpp"
#include "util/result.hpp"

namespace rlock::run {

// Why the steps of a process have lost the lock, although nobody released it:

// An operator broke it; the steps keep running.
struct Broken {
  lock::Lost how;
  // When the lease ends, if the lock waits for the process until then; none: another may hold it
  // now.
  std::optional<Millis> left;
};

// The process ended as soon as it had the lock: the steps are other processes.
struct EndedEarly {
  Millis after;  // its acquisition
};

using Notice = std::variant<LeaseEnd, Broken, EndedEarly>;

// The message for users.
using DescribeNotice = std::function<std::string(const Notice&)>;

// The process that `acquire --renew-while` leaves behind: it renews a lock while another process
// lives and releases it afterwards. If an operator breaks the lock, it stops renewing, and
// confirms when the process has exited or the lease has expired. A lost lock is reported on the
// process's stderr; a process that ends at once on that of its parent.
class BackgroundRenewer {
 public:
  // Forks it before anything is acquired, and before this process has a thread or a connection. In
  // a session of its own, without a descriptor of the caller's, it waits for the hand-off of
  // `claim`. ErrorKind::system when no process or descriptor is available.
  static Result<BackgroundRenewer> start(const lock::AcquireCall& claim,
                                         util::ProcessHandle watched,
                                         const lock::MakeServer& make_server, Signals& signals,
                                         const DescribeNotice& describe);

  // Before the hand-off: readable once the watched process, or the renewer itself, has ended.
  int fd() const { return line_.get(); }
  // Why there is nothing to wait for then: ErrorKind::busy for the process, else ErrorKind::system.
  Error gone() const;

  // It renews from now on. gone() where it cannot: then it does not hold on to the
  // lock.
  Status hand_off(const HeldLock& held_lock, lock::GrantReach reach);
  // The owner is known to the caller. Without this the renewer releases the lock when this
  // object, or this process, is gone.
  void keep();

 private:
  BackgroundRenewer(util::Fd line, util::ProcessHandle watched)
      : line_(std::move(line)), watched_(std::move(watched)) {}
  util::Fd line_;
  util::ProcessHandle watched_;
};

}  // namespace rlock::run
