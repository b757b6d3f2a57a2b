#include "run/terminal.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "run/signals.hpp"

namespace rlock::run {
Terminal Terminal::open() {
  Terminal terminal;
  terminal.fd_.reset(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.exists() || !terminal.ours()) return terminal;
  termios modes{};
  if (tcgetattr(terminal.fd_.get(), &modes) == 0) terminal.before_ = modes;
  return terminal;
}

bool Terminal::ours() const {
  return tcgetpgrp(fd_.get()) == getpgrp();
}

void Terminal::give_to(pid_t group) const {
  SignalBlock no_stop(SIGTTOU);  // changing a terminal from the background would stop us
  tcsetpgrp(fd_.get(), group);
}

void Terminal::stop_with(pid_t command) {
  if (!exists()) return;
  pid_t group = getpgid(command);
  if (group <= 0 || group == getpgrp()) return;
  if (tcgetpgrp(fd_.get()) == group) give_to(getpgrp());
  raise(SIGTSTP);  // nothing in an orphaned group, which nobody would resume
  if (ours()) give_to(group);
  kill(-group, SIGCONT);
}

void Terminal::restore_after(pid_t command_group) {
  if (!exists()) return;
  if (command_group > 0 && tcgetpgrp(fd_.get()) == command_group) give_to(getpgrp());
  if (!before_ || !ours()) return;
  termios now{};
  if (tcgetattr(fd_.get(), &now) != 0 || std::memcmp(&now, &*before_, sizeof now) == 0) return;
  SignalBlock no_stop(SIGTTOU);
  tcsetattr(fd_.get(), TCSADRAIN, &*before_);
}

}  // namespace rlock::run
