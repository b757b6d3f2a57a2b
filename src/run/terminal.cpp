// Runs in rlock, on the main thread.

#include "run/terminal.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "run/signals.hpp"
#include "util/process.hpp"

namespace rlock::run {
namespace {

// If the kernel refuses this, or it is of no use, nothing is held back.
util::Fd watch_for_stops() {
  struct sigaction action {};
  if (sigaction(SIGTSTP, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return {};
  // The caller blocks the signal, so it stops neither rlock nor the command, which inherits the
  // mask.
  sigset_t blocked;
  if (pthread_sigmask(SIG_BLOCK, nullptr, &blocked) != 0 || sigismember(&blocked, SIGTSTP) == 1)
    return {};
  const sigset_t stop = util::signal_set({SIGTSTP});
  return util::Fd(signalfd(-1, &stop, SFD_NONBLOCK | SFD_CLOEXEC));
}

// A pager may read rlock's output: then rlock must neither save nor restore the terminal's modes.
bool has_reader() {
  struct stat info {};
  return fstat(STDOUT_FILENO, &info) == 0 && S_ISFIFO(info.st_mode);
}

}  // namespace

Terminal Terminal::open() {
  Terminal terminal;
  terminal.fd_.reset(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.exists()) return terminal;
  terminal.stop_ = watch_for_stops();
  terminal.was_ours_ = terminal.ours();
  if (!terminal.was_ours_ || has_reader()) return terminal;
  termios modes{};
  if (tcgetattr(terminal.fd_.get(), &modes) == 0) terminal.before_ = modes;
  return terminal;
}

pid_t Terminal::foreground() const {
  return tcgetpgrp(fd_.get());
}

bool Terminal::ours() const {
  return foreground() == getpgrp();
}

void Terminal::give_to(pid_t group) const {
  util::SignalBlock no_stop({SIGTTOU});  // changing a terminal from the background would stop rlock
  tcsetpgrp(fd_.get(), group);
}

// Never reads the pending signal from the descriptor, because a CONT can then still discard it.
void Terminal::stop() const {
  const sigset_t stop = util::signal_set({SIGTSTP});
  sigset_t before;
  pthread_sigmask(SIG_UNBLOCK, &stop, &before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// The first ancestor outside the process group decides: a shell with job control belongs to the
// same session.
bool Terminal::can_stop() const {
  pid_t parent = getppid();
  while (parent > 1 && getpgid(parent) == getpgrp()) {
    auto stat = util::read_stat(parent);
    parent = stat ? stat->parent : 0;
  }
  return parent > 0 && getsid(parent) == getsid(0);
}

bool Terminal::left_alone_by(pid_t command) const {
  pid_t group = getpgid(command);
  return exists() && group > 0 && group != getpgrp();
}

void Terminal::stop_with(pid_t command) const {
  pid_t group = getpgid(command);
  if (group <= 0) return;
  if (foreground() == group) give_to(getpgrp());
  raise(SIGTSTP);
  stop();
  if (ours()) give_to(group);
  kill(-group, SIGCONT);
}

void Terminal::take_back(pid_t command_group) const {
  if (!exists()) return;
  const pid_t group = foreground();
  const bool left_dead = was_ours_ && group > 1 && kill(-group, 0) != 0 && errno == ESRCH;
  if ((command_group > 0 && group == command_group) || left_dead) give_to(getpgrp());
}

void Terminal::restore_modes() const {
  if (!before_ || !ours()) return;
  termios now{};
  if (tcgetattr(fd_.get(), &now) != 0) return;
  // The kernel's structure has no padding, and both were zeroed before it filled them.
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
  if (std::memcmp(&now, &*before_, sizeof now) == 0) return;
  util::SignalBlock no_stop({SIGTTOU});
  // Not TCSADRAIN, which would wait for output that a ^S holds back.
  tcsetattr(fd_.get(), TCSANOW, &*before_);
}

}  // namespace rlock::run
