// Runs in rlock, on the main thread.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <optional>

#include "util/fd.hpp"

namespace rlock::run {

// The controlling terminal, where there is one: the command then stays in rlock's process group and
// the kernel's job control reaches both. [docs/SUPERVISION.md, "Terminal"]
class Terminal {
 public:
  // Never fails: without a controlling terminal there is nothing to do.
  static Terminal open();

  bool exists() const { return static_cast<bool>(fd_); }

  // Readable when a ^Z is held back under a SignalBlock of SIGTSTP; -1 where none can be.
  int stop_fd() const { return stop_.get(); }
  // Lets the kernel stop us by the signal that is held back: unless a CONT has taken it away again.
  // Returns when we are resumed.
  void stop() const;
  // Whether a stop has an effect. The kernel does not stop an orphaned group, which nobody would
  // resume.
  bool can_stop() const;

  // The group that has the terminal; -1 when there is none.
  pid_t foreground() const;

  // Whether a command that has stopped leads a group of its own by itself (a shell with job
  // control): the kernel has not stopped us with it.
  bool left_alone_by(pid_t command) const;
  // Takes the terminal back from such a command, stops, and resumes both when our shell does.
  void stop_with(pid_t command) const;

  // Restores the group and the modes of the terminal, when the command is dead. A shell that was
  // killed leaves the terminal to a job of its own, which is dead by then, too.
  void restore_after(pid_t command_group);

 private:
  bool ours() const;
  void give_to(pid_t group) const;

  util::Fd fd_;
  util::Fd stop_;
  bool was_ours_ = false;
  std::optional<termios> before_;  // none from the background, or in front of a pager
};

}  // namespace rlock::run
