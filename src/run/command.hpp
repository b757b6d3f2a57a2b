// Made in rlock, on the main thread. start() runs in the guard, exec_command() in the command.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "run/process_tree.hpp"
#include "run/shared_state.hpp"
#include "run/signals.hpp"

namespace rlock::run {

// The command, prepared for its start: all allocation happens here, before the fork.
class Command {
 public:
  // `added`: environment entries `NAME=value` that replace inherited entries of the same name;
  // `NAME` without a value removes the entry.
  Command(std::vector<std::string> argv, const std::vector<std::string>& added);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Called by the guard: starts the command, found as execvp(3) finds it, and does not wait for its
  // exec. Until the exec the command shares the caller's memory, errno included. state.exec_error
  // reports a failed exec, whose process has to be reaped like any other. The command never starts
  // after the state's kill time, and dies with this thread. Returns -1 with errno if no process is
  // available. Async-signal-safe.
  pid_t start(const Signals& signals, SharedState& state, Grouping grouping) noexcept;

  // Called by the guard: replaces the `added` entries by `count` entries from `text`, which are
  // separated by their final zeros. Async-signal-safe.
  void set_added(char* text, size_t count) noexcept;

 private:
  struct Start;
  static int exec_command(void* start) noexcept;
  void set_own_pid() noexcept;
  int try_all() noexcept;
  int try_one(const char* path) noexcept;

  std::vector<std::string> words_;
  std::vector<std::string> paths_;  // candidates, in order
  std::vector<char*> argv_;
  // For a script without an interpreter line: sh, its path, arguments.
  std::vector<char*> shell_argv_;
  std::vector<std::string> added_;
  // NAME=, with room for a pid: replaced by the command's own pid.
  std::vector<std::string> own_pids_;
  std::vector<char*> environment_;  // with room for all added entries
  size_t inherited_ = 0;            // how many entries at the front are inherited
};

}  // namespace rlock::run
