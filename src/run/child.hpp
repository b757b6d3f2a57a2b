// Made in rlock, on the main thread. start() runs in the guard, exec_child() in the command.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "run/process_tree.hpp"
#include "run/shared_state.hpp"
#include "run/signals.hpp"

namespace rlock::run {

// The command, made ready: whatever allocates happens here, before the fork.
class Child {
 public:
  // `added`: environment entries `NAME=value` that replace inherited ones of the same name; `NAME`
  // alone removes that.
  Child(std::vector<std::string> argv, const std::vector<std::string>& added);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // By the guard: starts it, found as execvp(3) finds it, and does not wait for its exec. Until
  // then it shares the caller's memory, errno included. A failed exec is reported by
  // state.exec_error, and its process is then to be reaped like any other. It never starts after
  // the state's kill time, and dies with this thread. -1 with errno when no process is available.
  // Async-signal-safe.
  pid_t start(const Signals& signals, SharedState& state, Grouping grouping) noexcept;

  // By the guard: takes `count` entries from `text`, one after the other with their final zeros,
  // in the place of those that it was made with. Async-signal-safe.
  void set_added(char* text, size_t count) noexcept;

 private:
  struct Start;
  static int exec_child(void* start) noexcept;
  void set_own_pid() noexcept;
  int try_all() noexcept;
  int try_one(const char* path) noexcept;

  std::vector<std::string> words_;
  std::vector<std::string> paths_;  // candidates, in order
  std::vector<char*> argv_;
  std::vector<char*> shell_argv_;  // for a script without a first line: sh, its path, arguments
  std::vector<std::string> added_;
  std::vector<std::string> own_pids_;  // NAME=, with room for a pid: it becomes the command's own
  std::vector<char*> environment_;     // with room for all that is added
  size_t inherited_ = 0;               // as many of these come first
};

}  // namespace rlock::run
