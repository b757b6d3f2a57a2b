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

// What reads /proc is async-signal-safe, but for the names.

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

// That of the main thread of a process.
int open_children_of(pid_t pid) noexcept;

// Whether the process whose folder is open ignores `signal`; false where /proc does not say.
bool ignores_in(int folder, int signal) noexcept;

// Its short name, for messages; may be hostile text.
std::string read_name(pid_t pid);

// As /etc/passwd has it, else empty. NSS would cost more than a whole run, and may ask a server.
std::string name_in_passwd(uid_t uid);

// Our own number as /proc counts; -1 where it does not show us, or is not mounted.
pid_t own_number_in_proc() noexcept;
// Whether /proc counts processes as we do: not after `unshare -p`, nor where it is not mounted.
inline bool proc_is_ours() noexcept {
  return own_number_in_proc() == getpid();
}

// Whether the process runs the file that this one runs.
bool runs_our_program(pid_t pid);

// Whether `pid` is a shell's fork that collects our standard output for its parent, as `$( )` makes
// one: it has not gone through an exec, and its standard output is ours, a pipe, while its parent
// has another one. False where /proc does not show it.
bool collects_our_output(pid_t pid) noexcept;

// Whether `pid` descends from `ancestor`; false when it is gone already.
bool descends_from(pid_t pid, pid_t ancestor) noexcept;

// Whether the process that had the number `pid` at `then` runs and is an ancestor of this one.
// False as well where /proc does not show it: in a container, on another host.
bool is_live_ancestor(pid_t pid, TimePoint then) noexcept;

// The number that a file name is, negative when it is none.
int number_from(const char* name) noexcept;

// Calls visit(number) for each entry of the open `folder` that is a number, until that returns
// false. False when the folder cannot be read.
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

// The same for the open `list` of children, from its beginning. A small piece at a time: the list
// may grow as fast as it is read. It may miss some of them when others end meanwhile. [proc(5),
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

// Readable once the process has ended. None, with errno, where there is no such process, or the
// kernel has none for us.
Fd open_pidfd(pid_t pid) noexcept;

// Where execvp(3) looks for a program, in order.
std::vector<std::string> candidates_on_path(const std::string& program);

// Another process, of which only its end matters. A reused pid does not pass for it.
class ProcessHandle {
 public:
  enum class By { pidfd, start_time };

  // ErrorKind::usage where there is no such process, or it has ended. By start time where the
  // kernel has no pidfd for us.
  static Result<ProcessHandle> open(pid_t pid, By by = By::pidfd);

  pid_t pid() const { return pid_; }
  bool ended() const;
  // Readable once it has ended; -1 where that has to be looked for now and then.
  int fd() const { return pidfd_.get(); }

 private:
  explicit ProcessHandle(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  Fd pidfd_;
  std::optional<uint64_t> born_;  // where /proc shows it to us
};

// `killed by signal 9 (SIGKILL)`
std::string killed_by(int signal);

// Whether a seccomp filter applies to this process. Async-signal-safe.
bool has_syscall_filter() noexcept;

// Whether a filter lets this process make the system calls of `tried`, and does not kill it for
// them: a child tries. At once where there is no filter. The caller reaps children on no other
// thread. Async-signal-safe.
bool filter_allows(void (*tried)() noexcept) noexcept;

// ErrorKind::system: what the system refused, and why.
Error system_error(std::string_view what, int error = errno);

// Closes what came through an exec, and so is not close-on-exec, except fd 2; fds 0 and 1 become
// /dev/null. [docs/SUPERVISION.md, "Inherited state"]
void close_inherited_descriptors();

// Closes every descriptor from `first` on. Async-signal-safe.
void close_all_from(unsigned first) noexcept;

// The name of a guard, which neither `pkill rlock` nor `pkill -f` with the command line matches. At
// most 15 characters, as PR_SET_NAME takes them.
inline constexpr char kGuardName[] = "lease-guard";

// The signal by which a background renewer or the server of a `local:` URL asks the guards above it
// to be left alone. Of real time: it is queued for each who asks. [docs/SUPERVISION.md, "Process
// tree"]
inline int exemption_signal() noexcept {
  return SIGRTMAX;
}

// Asks them, before the process says that it is ready. False where it cannot outlive them: the
// guard of a contained run is the init of our pid namespace. Async-signal-safe.
bool ask_guards_for_exemption() noexcept;

// Calls `body` in a process that init adopts, in a session of its own. 0, or an errno where a
// process is refused.
int run_apart(const std::function<void()>& body);

// Starts a thread that nobody joins, with every signal blocked: signals are the main thread's.
// Returns an errno, 0 for none.
int start_detached(std::function<void()> body);

// The set of these signals. Async-signal-safe.
inline sigset_t signal_set(std::initializer_list<int> signals) noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  return set;
}

// Blocks signals in this thread for as long as it lives.
class SignalBlock {
 public:
  // Blocks every signal: a child forked under it is not stopped or ended before it is ready.
  SignalBlock() noexcept;
  explicit SignalBlock(int signal) noexcept;
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;
  ~SignalBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace rlock::util
