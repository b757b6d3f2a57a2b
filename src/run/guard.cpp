#include "run/guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "run/guard_process.hpp"
#include "run/signals.hpp"

namespace rlock::run {
namespace {

util::Error refused(const char* what, int error) {
  return {util::ErrorKind::system,
          std::string("cannot start the guard: ") + what + ": " + std::strerror(error)};
}

}  // namespace

util::Result<Guard> Guard::start(Page& page, const Quarry& quarry) {
  Guard guard(page, quarry);
  if (auto spawned = guard.spawn(); !spawned) return std::move(spawned).error();
  return guard;
}

Guard::Guard(Guard&& other) noexcept
    : page_(other.page_),
      quarry_(other.quarry_),
      pipe_(std::move(other.pipe_)),
      pid_(std::exchange(other.pid_, -1)) {}

void Guard::dismiss() const {
  if (pid_ > 0) kill(pid_, SIGKILL);
}

Guard::~Guard() {
  if (pid_ <= 0) return;
  dismiss();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

util::Status Guard::spawn() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return refused("pipe", errno);
  util::Fd rlock_is_here(ends[0]);
  pipe_.reset(ends[1]);
  auto timer = GuardTimer::make();
  if (!timer) return std::move(timer).error();
  // Not fork(): other threads may exist, and no handler of theirs may run in the guard.
  // Signals are blocked from birth: a ^Z must not stop the guard before it has left our group.
  SignalBlock all;
  pid_t pid = _Fork();
  if (pid == 0) guard_process(*page_, quarry_, rlock_is_here.get(), *timer);
  if (pid < 0) return refused("fork", errno);
  pid_ = pid;
  return util::Done{};
}

util::Status Guard::tend() {
  siginfo_t info{};
  if (pid_ > 0) {
    auto id = static_cast<id_t>(pid_);
    if (waitid(P_PID, id, &info, WEXITED | WSTOPPED | WNOHANG) == 0 && info.si_pid == 0) {
      return util::Done{};
    }
    if (info.si_code == CLD_STOPPED) {
      kill(pid_, SIGCONT);
      return util::Done{};
    }
    pid_ = -1;
  }
  if (page_->phase.load() != Phase::armed) return util::Done{};
  return spawn();
}

void Guard::await_killed(util::TimePoint until) {
  while (page_->phase.load() == Phase::killing && util::BootClock::now() < until) {
    if (auto tended = tend(); !tended || pid_ < 0) return;
    constexpr timespec kPause{0, 1'000'000};
    nanosleep(&kPause, nullptr);
  }
}

}  // namespace rlock::run
