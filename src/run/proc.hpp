#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "util/clock.hpp"
#include "util/fd.hpp"

// Reading /proc without allocation or locks: all of this is async-signal-safe.
namespace rlock::run {

struct ProcessStat {
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';
  uint64_t flags = 0;  // PF_… of the kernel
  uint64_t threads = 0;
  uint64_t born = 0;       // clock ticks since boot
  uint64_t arguments = 0;  // where argv lies in its memory; 0 when it is not ours to know
  uint64_t arguments_end = 0;

  // A zombie whose other threads run on is alive.
  bool alive() const { return (state != 'Z' && state != 'X') || threads > 1; }
  // It has not gone through an exec since it was forked.
  bool before_exec() const {
    constexpr uint64_t kForkNoExec = 0x40;  // PF_FORKNOEXEC, <linux/sched.h> of the kernel
    return (flags & kForkNoExec) != 0;
  }
};

// nullopt when there is no such process, or /proc does not show it.
std::optional<ProcessStat> read_stat(pid_t pid) noexcept;
// The same of the process whose folder /proc/PID is open as `folder`: that stays one process's.
std::optional<ProcessStat> read_stat_in(int folder) noexcept;

// /proc/PID, or -1 with errno. pidfd_send_signal(2) takes it.
int open_process(pid_t pid) noexcept;

// The list of children of one thread of the process whose folder /proc/PID/task is open as `tasks`;
// -1 with errno where it cannot be had.
int open_children(int tasks, pid_t thread) noexcept;

// Whether the process whose folder is open ignores `signal`; false where /proc does not say.
bool ignores_in(int folder, int signal) noexcept;

// Its short name, for messages; may be hostile text. Allocates.
std::string read_name(pid_t pid);

// Our own number as /proc counts; -1 where it does not show us, or is not mounted.
pid_t own_number_in_proc() noexcept;
// Whether /proc counts processes as we do: not after `unshare -p`, nor where it is not mounted.
inline bool proc_is_ours() noexcept {
  return own_number_in_proc() == getpid();
}

// Whether `pid` descends from `ancestor`; false when it is gone already.
bool descends_from(pid_t pid, pid_t ancestor) noexcept;

// Whether the process that had the number `pid` at `then` runs and is an ancestor of this one. A
// process of which rlock runs above stays one: rlock adopts the orphans among its descendants.
// False as well where /proc does not show it: in a container, on another host.
bool is_live_ancestor(pid_t pid, TimePoint then) noexcept;

// The number a file name is, -1 when it is none.
int number_from(const char* name) noexcept;

// Calls visit(number), and goes on unless that returns false.
template <class Visit>
bool goes_on(Visit& visit, int number) noexcept {
  if constexpr (std::is_void_v<decltype(visit(number))>) {
    visit(number);
    return true;
  } else {
    return visit(number);
  }
}

// Calls visit(number) for each entry of the open `folder` that is a number, as long as it goes on;
// false when the folder cannot be read.
template <class Visit>
bool for_each_number_in(int folder, Visit visit) noexcept {
  alignas(dirent64) char buffer[8192] __attribute__((uninitialized));
  while (true) {
    long got = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (got <= 0) return got == 0;
    for (long at = 0; at < got;) {
      auto* entry = reinterpret_cast<dirent64*>(buffer + at);
      at += entry->d_reclen;
      int number = number_from(entry->d_name);
      if (number >= 0 && !goes_on(visit, number)) return true;
    }
  }
}

// The same for the folder at `path`.
template <class Visit>
bool for_each_number_in(const char* path, Visit visit) noexcept {
  util::Fd folder(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder && for_each_number_in(folder.get(), visit);
}

// Calls visit(pid) for each number in the open `list` of children, from its beginning, until that
// returns false. A small piece at a time: the list may grow at its end as fast as it is read. It
// may miss some of them when others end meanwhile. [proc(5), children]
template <class Visit>
void for_each_child_in(int list, Visit visit) noexcept {
  char buffer[1024];
  pid_t pid = 0;
  off_t at = 0;
  for (ssize_t got; (got = pread(list, buffer, sizeof buffer, at)) > 0; at += got) {
    for (const char* c = buffer; c != buffer + got; ++c) {
      if (*c >= '0' && *c <= '9') {
        pid = pid * 10 + (*c - '0');
      } else if (pid != 0 && !visit(std::exchange(pid, 0))) {
        return;
      }
    }
  }
}

}  // namespace rlock::run
