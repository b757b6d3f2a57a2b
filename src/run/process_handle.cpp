#include "run/process_handle.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "run/proc.hpp"

namespace rlock::run {
namespace {

// nullopt as well where /proc hides it, or counts processes as another namespace does.
std::optional<ProcessStat> seen(pid_t pid) {
  return proc_is_ours() ? read_stat(pid) : std::nullopt;
}

}  // namespace

Result<ProcessHandle> ProcessHandle::open(pid_t pid, By by) {
  ProcessHandle watched(pid);
  if (auto stat = seen(pid)) watched.born_ = stat->born;
  if (by == By::pidfd) {
    watched.pidfd_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));  // close-on-exec
  }
  if (!watched.ended()) return watched;
  return Error{ErrorKind::usage, "there is no process " + std::to_string(pid)};
}

bool ProcessHandle::ended() const {
  if (pidfd_) {
    pollfd fd{pidfd_.get(), POLLIN, 0};
    return poll(&fd, 1, 0) > 0;
  }
  if (kill(pid_, 0) != 0 && errno == ESRCH) return true;
  if (!born_) return false;
  auto stat = seen(pid_);
  return !stat || !stat->alive() || stat->born != *born_;
}

}  // namespace rlock::run
