// BackgroundRenewer runs in `rlock acquire`; everything else runs in the process that it leaves
// behind.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "lock/held_lock.hpp"
#include "lock/inspector.hpp"
#include "run/run_end.hpp"
#include "run/signals.hpp"
#include "util/fd.hpp"
#include "util/process.hpp"
#include "util/result.hpp"

namespace rlock::run {

// Why the steps of a process have lost the lock, although they did not release it:

// An operator broke the lock; the steps keep running.
struct Broken {
  lock::Lost how;
  // Time until the lease expires, if the lock waits for the process until then; nullopt: another
  // run may hold it now.
  std::optional<Millis> left;
};

// The process exited as soon as it had the lock, so the steps run in other processes.
struct EndedEarly {
  Millis after;  // since the acquisition
};

using Notice = std::variant<LeaseEnd, Broken, EndedEarly>;

// Makes the message for users.
using DescribeNotice = std::function<std::string(const Notice&)>;

// The process that `acquire --renew-while` leaves behind. It renews a lock while another process is
// alive, and releases the lock afterwards. If an operator breaks the lock, it stops renewing, and
// confirms when the process has exited or the lease has expired. It reports a lost lock on the
// process's stderr, and an early exit of the process on the stderr of that process's parent.
class BackgroundRenewer {
 public:
  // Forks the renewer before anything is acquired, and before this process has a thread or a
  // connection. The renewer has its own session and no descriptor of the caller's, and waits for
  // the hand-off of `claim`. ErrorKind::system if no process or descriptor is available.
  static Result<BackgroundRenewer> start(const lock::AcquireCall& claim,
                                         util::ProcessHandle watched,
                                         const lock::MakeServer& make_server, Signals& signals,
                                         const DescribeNotice& describe);

  // Before the hand-off: readable once the watched process or the renewer has exited.
  int fd() const { return line_.get(); }
  // The error for that case: ErrorKind::busy for the process, ErrorKind::system for the renewer.
  Error gone() const;

  // Hands the lock over: the renewer renews it from now on. Returns gone() if the renewer cannot;
  // then it does not keep the lock.
  Status hand_off(const lock::HeldLock& held_lock, lock::GrantReach reach);
  // Call once the caller knows the owner id. Otherwise the renewer releases the lock when this
  // object, or this process, is gone.
  void keep();

 private:
  BackgroundRenewer(util::Fd line, util::ProcessHandle watched)
      : line_(std::move(line)), watched_(std::move(watched)) {}
  util::Fd line_;
  util::ProcessHandle watched_;
};

}  // namespace rlock::run
