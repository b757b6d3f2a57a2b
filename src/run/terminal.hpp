// Runs in rlock, on the main thread.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <optional>

#include "util/fd.hpp"

namespace rlock::run {

// The controlling terminal, if there is one. The command then stays in rlock's process group, and
// the kernel's job control reaches both. [docs/SUPERVISION.md, "Terminal"]
class Terminal {
 public:
  // Never fails: without a controlling terminal there is nothing to do.
  static Terminal open();

  bool exists() const { return static_cast<bool>(fd_); }

  // Readable if a ^Z is held back under a SignalBlock of SIGTSTP; -1 if none can be.
  int stop_fd() const { return stop_.get(); }
  // Lets the kernel stop this process by the signal that is held back, unless a CONT has discarded
  // it. Returns when this process is resumed.
  void stop() const;
  // Whether a stop has an effect. The kernel does not stop an orphaned process group, because no
  // process would resume it.
  bool can_stop() const;

  // The process group in the terminal's foreground; -1 if there is none.
  pid_t foreground() const;

  // Whether a stopped command leads its own group (a shell with job control), so that the kernel
  // has not stopped this process with it.
  bool left_alone_by(pid_t command) const;
  // Takes the terminal back from such a command, stops, and resumes both when the shell resumes
  // this process.
  void stop_with(pid_t command) const;

  // Takes the terminal back from the command's group, or from one that is dead, once the command is
  // dead. A shell that was killed leaves the terminal to one of its jobs, which is dead by then,
  // too.
  void take_back(pid_t command_group) const;
  // Restores the modes of the terminal.
  void restore_modes() const;

 private:
  bool ours() const;
  void give_to(pid_t group) const;

  util::Fd fd_;
  util::Fd stop_;
  bool was_ours_ = false;
  // None if rlock started in the background, or in front of a pager.
  std::optional<termios> before_;
};

}  // namespace rlock::run
