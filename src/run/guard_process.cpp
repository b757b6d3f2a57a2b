#include "run/guard_process.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "run/descriptors.hpp"
#include "run/proc.hpp"
#include "util/mutant.hpp"

namespace rlock::run {
namespace {

using namespace std::chrono_literals;

// Neither `pkill rlock` nor `pkill -f` with the command line may match: both would go together and
// leave the grandchildren. At most 15 characters, as PR_SET_NAME takes them.
constexpr char kName[] = "lease-guard";

// Where the descriptors that it keeps are put, so that the rest can be closed in one call.
constexpr int kPipe = 0;
constexpr int kTimer = 1;

// Locking memory at once costs the start of every run 0.2 ms; short commands never need it.
constexpr auto kLockMemoryAfter = 50ms;
// To wait for what does not die at once of KILL.
constexpr auto kKillingTime = 5s;

void overwrite_arguments() noexcept {
  auto stat = read_stat(getpid());
  if (!stat || stat->arguments == 0 || stat->arguments_end <= stat->arguments) return;
  auto* text = reinterpret_cast<char*>(stat->arguments);
  size_t room = stat->arguments_end - stat->arguments;
  std::memset(text, 0, room);
  std::memcpy(text, kName, std::min(room - 1, sizeof kName - 1));
}

void become_the_guard(int pipe, int timer) noexcept {
  setsid();
  dup2(pipe, kPipe);
  dup2(timer, kTimer);
  close_all_from(kTimer + 1);
  prctl(PR_SET_NAME, kName);
  if (proc_is_ours()) overwrite_arguments();
}

void set_timer(int fd, util::TimePoint at) noexcept {
  auto since_boot = at.time_since_epoch();
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
  itimerspec spec{};
  spec.it_value.tv_sec = seconds.count();
  spec.it_value.tv_nsec = (since_boot - seconds).count();
  timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, nullptr);
}

void end_command(Page& page, Quarry quarry) noexcept {
  if (mutant(util::Mutant::guard_off)) return;
  if (!page.leave_armed(Phase::killing)) return;
  quarry.command = page.command.load();
  kill_tree(quarry, util::BootClock::now() + kKillingTime);
  page.phase.store(Phase::killed);
}

// True when rlock is gone.
bool read_pipe() noexcept {
  char kicks[16];
  ssize_t got = read(kPipe, kicks, sizeof kicks);
  return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
}

[[noreturn]] void keep_watch(Page& page, Quarry quarry) noexcept {
  bool locked = false;
  while (true) {
    pollfd fds[2] = {{kPipe, POLLIN, 0}, {kTimer, POLLIN, 0}};
    if (page.phase.load() == Phase::armed) {
      set_timer(kTimer, page.kill_at());
    } else {
      fds[1].fd = -1;
    }
    constexpr int kWait = static_cast<int>(std::chrono::milliseconds(kLockMemoryAfter).count());
    if (poll(fds, 2, locked ? -1 : kWait) == 0) {
      mlockall(MCL_CURRENT);  // a refusal is fine: it may then wait for a page, no more
      locked = true;
    }
    if (fds[0].revents != 0 && read_pipe()) {
      quarry.runner = -1;  // its number may belong to a stranger by now
      end_command(page, quarry);
      _exit(0);
    }
    if (util::BootClock::now() >= page.kill_at()) end_command(page, quarry);
  }
}

}  // namespace

util::Result<GuardTimer> GuardTimer::make() {
  GuardTimer timer(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (timer.fd() >= 0) return timer;
  return util::Error{util::ErrorKind::system,
                     std::string("cannot start the guard: timerfd: ") + std::strerror(errno)};
}

void guard_process(Page& page, Quarry quarry, int rlock_is_here, const GuardTimer& timer) noexcept {
  quarry.guard = getpid();
  become_the_guard(rlock_is_here, timer.fd());
  keep_watch(page, quarry);
}

}  // namespace rlock::run
