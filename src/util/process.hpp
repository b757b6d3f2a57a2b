#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/clock.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::util {

// Functions that read /proc are async-signal-safe, unless they return a name.

struct ProcessStat {
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';
  uint64_t flags = 0;  // PF_… of the kernel
  uint64_t threads = 0;
  uint64_t born = 0;       // clock ticks since boot
  uint64_t arguments = 0;  // address of argv in its memory; 0 if this process may not know it
  uint64_t arguments_end = 0;

  // A zombie counts as alive while other threads of it are running.
  bool alive() const { return (state != 'Z' && state != 'X') || threads > 1; }
  // Whether it has not called exec since its fork.
  bool before_exec() const {
    constexpr uint64_t kForkNoExec = 0x40;  // PF_FORKNOEXEC, <linux/sched.h> of the kernel
    return (flags & kForkNoExec) != 0;
  }
};

// Returns nullopt if there is no such process, or /proc does not show it.
std::optional<ProcessStat> read_stat(pid_t pid) noexcept;
// The same for the process whose folder /proc/PID is open as `folder`, which always belongs to one
// process.
std::optional<ProcessStat> read_stat_in(int folder) noexcept;

// Opens /proc/PID for pidfd_send_signal(2); -1 with errno.
int open_process(pid_t pid) noexcept;

// Opens the list of children of one thread of the process whose folder /proc/PID/task is open as
// `tasks`; -1 with errno if the kernel has no such list.
int open_children(int tasks, pid_t thread) noexcept;

// Opens the list of children of the main thread of a process.
int open_children_of(pid_t pid) noexcept;

// Whether the process whose folder is open ignores `signal`; false if /proc does not say.
bool ignores_in(int folder, int signal) noexcept;

// The short name of a process, for messages; may be hostile text.
std::string read_name(pid_t pid);

// The id of this boot of the host; empty if /proc does not show it.
std::string boot_id();

// The name of a user in /etc/passwd; empty if it is not there. NSS would cost more than a whole
// run, and may ask a server.
std::string name_in_passwd(uid_t uid);

// The pid of this process as /proc counts; -1 if /proc is not mounted or does not show this
// process.
pid_t own_number_in_proc() noexcept;
// Whether /proc counts processes as this process does. It does not after `unshare -p` or if it is
// not mounted.
inline bool proc_is_ours() noexcept {
  return own_number_in_proc() == getpid();
}

// Whether the process runs the same program file as this process.
bool runs_our_program(pid_t pid);

// Whether `pid` is a shell's fork that collects this process's standard output for its parent, as
// `$( )` makes one. Such a fork has not called exec, and its standard output is not this process's
// standard output, a pipe, while its parent has another one. False if /proc does not show it.
bool collects_our_output(pid_t pid) noexcept;

// Whether `pid` descends from `ancestor`; false if the process has exited.
bool descends_from(pid_t pid, pid_t ancestor) noexcept;

// Whether the process that had the number `pid` at `then` is alive and an ancestor of this process.
// False if /proc does not show it: in a container, or on another host.
bool is_live_ancestor(pid_t pid, TimePoint then) noexcept;

// The number that a file name represents; negative if it is not a number.
int number_from(const char* name) noexcept;

// Calls visit(number) for each entry of the open `folder` that is a number, until visit returns
// false. Returns false if the folder cannot be read.
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
      if (number >= 0 && !visit(number)) return true;
    }
  }
}

// The same for the folder at `path`.
template <class Visit>
bool for_each_number_in(const char* path, Visit visit) noexcept {
  Fd folder(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder && for_each_number_in(folder.get(), visit);
}

// The same for the open `list` of children, from its beginning. Reads small pieces, because the
// list may grow as fast as it is read. May miss some children if others exit meanwhile. [proc(5),
// children]
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

// A descriptor that is readable once the process has exited. Empty, with errno, if there is no such
// process or the kernel refuses a pidfd.
Fd open_pidfd(pid_t pid) noexcept;

// The paths at which execvp(3) looks for a program, in order.
std::vector<std::string> candidates_on_path(const std::string& program);

// Another process, to learn when it exits. A reused pid does not pass for it.
class ProcessHandle {
 public:
  enum class By { pidfd, start_time };

  // ErrorKind::usage if there is no such process, or it has exited. Identifies the process by its
  // start time if the kernel refuses a pidfd.
  static Result<ProcessHandle> open(pid_t pid, By by = By::pidfd);

  pid_t pid() const { return pid_; }
  bool ended() const;
  // Readable once the process has exited; -1 if the caller has to poll.
  int fd() const { return pidfd_.get(); }

 private:
  explicit ProcessHandle(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  Fd pidfd_;
  std::optional<uint64_t> born_;  // if /proc shows the process
};

// `TERM`, as a shell and `kill -l` name it; `signal 35` for a signal without a name.
std::string signal_name(int signal);

// `killed by signal 9 (SIGKILL)`
std::string killed_by(int signal);

// Whether a seccomp filter applies to this process. Async-signal-safe.
bool has_syscall_filter() noexcept;

// Whether a seccomp filter lets this process make the system calls of `tried` without killing it
// for them: a child tries. Returns immediately if there is no filter. No other thread of the caller
// may reap children. Async-signal-safe.
bool filter_allows(void (*tried)() noexcept) noexcept;

// ErrorKind::system: what the system refused, and why.
Error system_error(std::string_view what, int error = errno);

// Closes the descriptors that were inherited through exec, which are not close-on-exec, except fd
// 2; fds 0 and 1 become open_null(). [docs/SUPERVISION.md, "Inherited state"]
void close_inherited_descriptors();

// Closes every descriptor from `first` on. Async-signal-safe.
void close_all_from(unsigned first) noexcept;

// Whether this process may become the parent of orphans, which a seccomp filter or a sandbox may
// refuse. Changes nothing.
bool may_adopt_orphans() noexcept;

// The process name of a guard, which neither `pkill rlock` nor `pkill -f` with the command line
// matches. At most 15 characters, the limit of PR_SET_NAME.
inline constexpr char kGuardName[] = "lease-guard";

// The signal by which a background renewer or the server of a `local:` URL asks the guards above it
// to leave it alive. A real-time signal, because the kernel queues one for each process that asks.
// [docs/SUPERVISION.md, "Process tree"]
inline int exemption_signal() noexcept {
  return SIGRTMAX;
}

// Asks the guards, before this process reports that it is ready. False if this process cannot
// outlive them because the guard of a contained run is the init of its pid namespace.
// Async-signal-safe.
bool ask_guards_for_exemption() noexcept;

// Calls `body` in a process that init adopts, in its own session. Returns 0, or an errno if the
// kernel refuses a process.
int run_apart(const std::function<void()>& body);

// write(2) that raises no signal: no SIGPIPE without a reader, no SIGXFSZ beyond `ulimit -f`, and
// no SIGTTOU on a terminal with `stty tostop`.
ssize_t write_without_signal(int fd, std::string_view text) noexcept;

// Starts a detached thread with every signal blocked, because signals belong to the main thread.
// Returns 0 or an errno.
int start_detached(std::function<void()> body);

// The set that contains these signals. Async-signal-safe.
inline sigset_t signal_set(std::initializer_list<int> signals) noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  return set;
}

// Blocks signals in this thread during its lifetime.
class SignalBlock {
 public:
  // Blocks every signal, so that a signal does not stop or kill a child before it is ready.
  SignalBlock() noexcept;
  explicit SignalBlock(std::initializer_list<int> signals) noexcept;
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;
  ~SignalBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace rlock::util
