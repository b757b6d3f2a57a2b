#include "run/background_renewer.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lock/timing.hpp"
#include "run/background_renewer_process.hpp"
#include "run/proc.hpp"

namespace rlock::run {
namespace {

Error cannot_start_renewer(const char* what, int error) {
  return {ErrorKind::system,
          std::string("cannot start the background process that renews the lock: ") + what + ": " +
              std::strerror(error)};
}

// Twice, so that it is init's child and not the caller's. The middle one's exit code is an errno.
int fork_away(const BackgroundRenewerTask& task, util::Fd& line, util::Fd& ours) {
  pid_t middle = fork();
  if (middle < 0) return errno;
  if (middle == 0) {
    ours.reset();  // else it would never see the end of this process
    setsid();
    pid_t background_renewer = fork();
    if (background_renewer == 0) background_renewer_process(task, std::move(line));
    _exit(background_renewer > 0 ? 0 : errno);
  }
  int status = 0;
  while (waitpid(middle, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
}

// A process that init has adopted has no parent to report to.
std::optional<ProcessHandle> parent_of(pid_t pid) {
  auto stat = proc_is_ours() ? read_stat(pid) : std::nullopt;
  if (!stat || stat->parent <= 1) return std::nullopt;
  auto parent = ProcessHandle::open(stat->parent);
  return parent ? std::optional(*std::move(parent)) : std::nullopt;
}

}  // namespace

Result<BackgroundRenewer> BackgroundRenewer::start(const lock::AcquireCall& claim,
                                                   ProcessHandle watched,
                                                   const lock::MakeServer& make_server,
                                                   Signals& signals,
                                                   const DescribeNotice& describe) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return cannot_start_renewer("socketpair", errno);
  }
  util::Fd ours(ends[0]);
  util::Fd theirs(ends[1]);
  int error = fork_away({claim, watched, parent_of(watched.pid()), make_server, signals, describe},
                        theirs, ours);
  if (error != 0) return cannot_start_renewer("fork", error);
  return BackgroundRenewer(std::move(ours), std::move(watched));
}

Error BackgroundRenewer::gone() const {
  if (watched_.ended()) {
    return {ErrorKind::busy, "not acquired: process " + std::to_string(watched_.pid()) +
                                 " (--renew-while) has exited"};
  }
  return {ErrorKind::system,
          "the background process that renews the lock did not start, or was killed"};
}

Status BackgroundRenewer::hand_off(const AcquiredLease& acquired, const lock::Owner& owner) {
  HandOff all{acquired, {}};
  std::copy_n(owner.text().begin(), std::min(owner.text().size(), all.owner.size()),
              all.owner.begin());
  if (send(line_.get(), &all, sizeof all, MSG_NOSIGNAL) < 0) return gone();
  pollfd fd{line_.get(), POLLIN, 0};
  int ready = 0;
  while ((ready = poll(&fd, 1, static_cast<int>(timing::kRenewerStart.count()))) < 0 &&
         errno == EINTR)
    continue;
  char message = 0;
  if (ready <= 0 || recv(line_.get(), &message, 1, 0) != 1) return gone();
  return Done{};
}

void BackgroundRenewer::keep() {
  // Where it is gone already, an operator or the caller ended it: nothing is left to keep.
  [[maybe_unused]] ssize_t sent = send(line_.get(), "k", 1, MSG_NOSIGNAL);
}

}  // namespace rlock::run
