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
#include <utility>

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

// Its short name, for messages; may be hostile text. Allocates.
std::string read_name(pid_t pid);

// What a process begun now will have as its earliest `born`.
uint64_t born_now() noexcept;

// Whether the process's initial environment contains `text` (at most 256 bytes).
bool environ_contains(pid_t pid, std::string_view text) noexcept;

// Whether it is the server of a `local:` URL: nobody's command, whoever's child it has become.
bool is_local_server(pid_t pid) noexcept;

// Whether /proc counts processes as we do: not after `unshare -p`, nor where it is not mounted.
bool proc_is_ours() noexcept;

// The number a file name is, -1 when it is none.
int number_from(const char* name) noexcept;

// Calls visit(number) for each entry of `folder` that is a number; false when it cannot be read.
template <class Visit>
bool for_each_number_in(const char* folder, Visit visit) noexcept {
  util::Fd dir(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return false;
  alignas(dirent64) char buffer[8192];
  while (true) {
    long got = syscall(SYS_getdents64, dir.get(), buffer, sizeof buffer);
    if (got <= 0) return got == 0;
    for (long at = 0; at < got;) {
      auto* entry = reinterpret_cast<dirent64*>(buffer + at);
      at += entry->d_reclen;
      int number = number_from(entry->d_name);
      if (number >= 0) visit(number);
    }
  }
}

// Calls visit(pid) for each child of this thread, the dead ones too. It may miss some of them when
// others end meanwhile. [proc(5), children]
template <class Visit>
void for_each_child(Visit visit) noexcept {
  util::Fd list(open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC));
  if (!list) return;
  char buffer[4096];
  pid_t pid = 0;
  for (ssize_t got; (got = read(list.get(), buffer, sizeof buffer)) > 0;) {
    for (const char* at = buffer; at != buffer + got; ++at) {
      if (*at >= '0' && *at <= '9') {
        pid = pid * 10 + (*at - '0');
      } else if (pid != 0) {
        visit(std::exchange(pid, 0));
      }
    }
  }
}

}  // namespace rlock::run
