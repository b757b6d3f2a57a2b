#include "util/process.hpp"

#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "util/text.hpp"

namespace rlock::util {
namespace {

// "FOLDER/PID/FILE" without snprintf, which is not async-signal-safe.
struct ProcPath {
  ProcPath(pid_t pid, std::string_view file, std::string_view folder = "/proc/") noexcept {
    char* at = std::copy(folder.begin(), folder.end(), text);
    at = std::to_chars(at, text + sizeof text, pid).ptr;
    *at++ = '/';
    std::copy(file.begin(), file.end(), at);
  }

  char text[48] = {};
};

// /proc/PID/status of the process whose folder is open, without its groups: a user may belong to
// thousands of groups, and the file lists them before the signals.
class StatusFile {
 public:
  explicit StatusFile(int folder) noexcept {
    const Fd file(openat(folder, "status", O_RDONLY | O_CLOEXEC));
    char piece[1024];
    bool in_groups = false;
    for (ssize_t got = 1; file && (got = read(file.get(), piece, sizeof piece)) > 0;) {
      for (const char c : std::string_view(piece, static_cast<size_t>(got))) {
        in_groups = in_groups ? c != '\n' : std::string_view(text_, length_).ends_with("\nGroups:");
        if (!in_groups && length_ < sizeof text_) text_[length_++] = c;
      }
    }
  }

  std::string_view field(std::string_view name) const noexcept {
    std::string_view text(text_, length_);
    const size_t at = text.find(name);
    if (at == text.npos) return {};
    text.remove_prefix(at + name.size());
    return text.substr(0, text.find('\n'));
  }
  bool has_signal(std::string_view mask, int signal) const noexcept {
    const auto signals = parse_number<uint64_t>(field(mask), 16);
    return signals && (*signals >> (signal - 1) & 1) != 0;
  }

 private:
  char text_[4096];
  size_t length_ = 0;
};

// The limit of a walk up the chain of parents: the chain may change during the walk, but must not
// make it endless.
constexpr int kDeepest = 256;

// Whether the process with that number is the one that had the number at `then`: another process
// with the number began after that.
bool born_by(const ProcessStat& stat, TimePoint then) noexcept {
  const auto ticks = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  const auto since_boot = std::chrono::duration_cast<Millis>(then.time_since_epoch());
  return stat.born * 1000 / ticks <= static_cast<uint64_t>(since_boot.count());
}

// Returns nullopt as well if /proc hides the process, or counts processes in another namespace.
std::optional<ProcessStat> seen(pid_t pid) {
  return proc_is_ours() ? read_stat(pid) : std::nullopt;
}

// How many descriptor numbers to try without close_range(2) or /proc; no caller passes on more.
constexpr rlim_t kMostTried = 65'536;

int highest_tried() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return static_cast<int>(std::min(limit.rlim_cur, kMostTried));
}

bool close_if_inherited(int fd) {
  const int flags = fd > 2 ? fcntl(fd, F_GETFD) : -1;
  if (flags >= 0 && (flags & FD_CLOEXEC) == 0) close(fd);
  return true;  // lets the visit continue
}

constexpr int kRestarts = 8;

// What /proc/PID/status says of an ancestor.
struct Ancestor {
  pid_t parent = 0;  // 0: /proc does not show it
  bool guard = false;
};

Ancestor look_at(pid_t pid) noexcept {
  const Fd folder(open_process(pid));
  const auto stat = folder ? read_stat_in(folder.get()) : std::nullopt;
  if (!stat) return {};
  // A process that only calls itself a guard survives the signal, because it must block the signal,
  // too.
  const StatusFile status(folder.get());
  return {stat->parent, status.has_signal("\nSigBlk:\t", exemption_signal()) &&
                            status.field("Name:\t") == kGuardName};
}

}  // namespace

std::optional<ProcessStat> read_stat_in(int folder) noexcept {
  Fd file(openat(folder, "stat", O_RDONLY | O_CLOEXEC));
  char line[1024];
  ssize_t length = file ? read(file.get(), line, sizeof line) : -1;
  if (length <= 0) return std::nullopt;
  std::string_view rest(line, static_cast<size_t>(length));
  const size_t name_end = rest.rfind(')');  // the name may itself hold blanks and brackets
  if (name_end == rest.npos) return std::nullopt;
  rest.remove_prefix(name_end);
  std::array<std::string_view, 50> fields;  // by their numbers in proc(5); 2 is the name
  for (size_t at = 2; at < fields.size(); ++at) fields[at] = take_until(rest, ' ');
  auto number = [&](size_t at) { return parse_number<uint64_t>(fields[at]).value_or(0); };
  ProcessStat stat;
  if (!fields[3].empty()) stat.state = fields[3].front();
  stat.parent = static_cast<pid_t>(number(4));
  stat.group = static_cast<pid_t>(number(5));
  stat.session = static_cast<pid_t>(number(6));
  stat.flags = number(9);
  stat.threads = number(20);
  stat.born = number(22);
  stat.arguments = number(48);
  stat.arguments_end = number(49);
  return stat;
}

std::optional<ProcessStat> read_stat(pid_t pid) noexcept {
  Fd folder(open_process(pid));
  return folder ? read_stat_in(folder.get()) : std::nullopt;
}

int open_process(pid_t pid) noexcept {
  return open(ProcPath(pid, "").text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int open_children(int tasks, pid_t thread) noexcept {
  return openat(tasks, ProcPath(thread, "children", "").text, O_RDONLY | O_CLOEXEC);
}

int open_children_of(pid_t pid) noexcept {
  const Fd folder(open_process(pid));
  const Fd tasks(openat(folder.get(), "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return open_children(tasks.get(), pid);
}

bool ignores_in(int folder, int signal) noexcept {
  return StatusFile(folder).has_signal("\nSigIgn:\t", signal);
}

std::string read_name(pid_t pid) {
  Fd file(open(ProcPath(pid, "comm").text, O_RDONLY | O_CLOEXEC));
  char name[64];
  ssize_t length = file ? read(file.get(), name, sizeof name) : -1;
  if (length <= 0) return {};
  return std::string(name, static_cast<size_t>(length - 1));  // without the newline
}

std::string boot_id() {
  constexpr size_t kLongest = 64;
  const Fd file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  auto text = read_to_end(file, kLongest);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

std::string name_in_passwd(uid_t uid) {
  struct CloseFile {
    void operator()(FILE* file) const noexcept { fclose(file); }
  };
  std::unique_ptr<FILE, CloseFile> file(fopen("/etc/passwd", "re"));
  if (file == nullptr) return {};
  while (const passwd* entry = fgetpwent(file.get())) {
    if (entry->pw_uid == uid) return entry->pw_name;
  }
  return {};
}

pid_t own_number_in_proc() noexcept {
  char target[16] = {};
  ssize_t length = readlink("/proc/self", target, sizeof target - 1);
  return length > 0 ? number_from(target) : -1;
}

bool runs_our_program(pid_t pid) {
  struct stat own {};
  struct stat other {};
  return proc_is_ours() && stat("/proc/self/exe", &own) == 0 &&
         stat(util::format("/proc/{}/exe", pid).c_str(), &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

bool collects_our_output(pid_t pid) noexcept {
  struct stat own {};
  if (!proc_is_ours() || fstat(STDOUT_FILENO, &own) != 0 || !S_ISFIFO(own.st_mode)) return false;
  enum class Output { unknown, ours, another };
  auto output_of = [&own](pid_t process) {
    struct stat output {};
    if (stat(ProcPath(process, "fd/1").text, &output) != 0) return Output::unknown;
    const bool same = output.st_dev == own.st_dev && output.st_ino == own.st_ino;
    return same ? Output::ours : Output::another;
  };
  const auto found = read_stat(pid);
  return found && found->before_exec() && output_of(pid) == Output::ours &&
         output_of(found->parent) == Output::another;
}

bool descends_from(pid_t pid, pid_t ancestor) noexcept {
  pid_t at = pid;
  for (int level = 0; level < kDeepest && at > 1; ++level) {
    const auto stat = read_stat(at);
    const pid_t parent = stat ? stat->parent : 0;
    if (parent == ancestor) return true;
    if (parent == 0 && at == pid) return false;
    // A process in the chain has just exited, so its children have another parent now.
    at = parent == 0 ? pid : parent;
  }
  return false;
}

bool is_live_ancestor(pid_t pid, TimePoint then) noexcept {
  if (!proc_is_ours() || !descends_from(getpid(), pid)) return false;
  const auto stat = read_stat(pid);
  return stat && stat->alive() && born_by(*stat, then);
}

int number_from(const char* name) noexcept {
  return parse_number<int>(name).value_or(-1);
}

Fd open_pidfd(pid_t pid) noexcept {
  return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

std::vector<std::string> candidates_on_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  const char* path = std::getenv("PATH");
  std::vector<std::string> found;
  for (std::string_view folder :
       split(path != nullptr ? path : "/bin:/usr/bin", ':')) {  // as execvp(3)
    found.push_back(std::string(folder.empty() ? "." : folder) + "/" + program);
  }
  return found;
}

Result<ProcessHandle> ProcessHandle::open(pid_t pid, By by) {
  ProcessHandle watched(pid);
  if (auto stat = seen(pid)) watched.born_ = stat->born;
  if (by == By::pidfd) {
    watched.pidfd_ = open_pidfd(pid);
  }
  if (!watched.ended()) return watched;
  return Error{ErrorKind::usage, util::format("there is no process {}", pid)};
}

bool ProcessHandle::ended() const {
  if (pidfd_) {
    pollfd fd{pidfd_.get(), POLLIN, 0};
    return poll(&fd, 1, 0) > 0;
  }
  if (kill(pid_, 0) != 0 && errno == ESRCH) return true;
  if (!born_) return false;
  auto stat = seen(pid_);
  return !stat || !stat->alive() || stat->born != *born_;
}

void close_inherited_descriptors() {
  Fd null(open_null());
  for (int fd : {0, 1}) {
    if (null) dup3(null.get(), fd, O_CLOEXEC);
  }
  if (for_each_number_in("/proc/self/fd", close_if_inherited)) return;
  for (int fd = 3; fd < highest_tried(); ++fd) close_if_inherited(fd);
}

void close_all_from(unsigned first) noexcept {
  if (close_range(first, ~0U, 0) == 0) return;
  for (int fd = static_cast<int>(first); fd < highest_tried(); ++fd) close(fd);
}

bool may_adopt_orphans() noexcept {
  int adopts = 0;
  return prctl(PR_GET_CHILD_SUBREAPER, &adopts) == 0 && prctl(PR_SET_CHILD_SUBREAPER, adopts) == 0;
}

bool ask_guards_for_exemption() noexcept {
  pid_t pid = getppid();
  int restarts = 0;
  for (int level = 0; level < kDeepest && pid > 1; ++level) {
    const Ancestor ancestor = look_at(pid);
    if (ancestor.guard) kill(pid, exemption_signal());
    pid = ancestor.parent;
    // A process in the chain has just exited, so its children have another parent now; or /proc
    // does not show it.
    if (pid == 0 && restarts++ < kRestarts) pid = getppid();
  }
  return !look_at(1).guard;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? name : util::format("signal {}", signal);
}

std::string killed_by(int signal) {
  const char* name = sigabbrev_np(signal);
  return util::format("killed by signal {}{}", signal,
                      name != nullptr ? util::format(" (SIG{})", name) : "");
}

bool has_syscall_filter() noexcept {
  return prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER;
}

bool filter_allows(void (*tried)() noexcept) noexcept {
  if (!has_syscall_filter()) return true;
  const pid_t child = _Fork();
  if (child == 0) {
    prctl(PR_SET_DUMPABLE, 0);  // no core dump is wanted
    tried();
    _exit(0);
  }
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return child > 0 && WIFEXITED(status);
}

Error system_error(std::string_view what, int error) {
  return {ErrorKind::system, util::format("{}: {}", what, std::strerror(error))};
}

// The intermediate process exits with the errno of its fork.
int run_apart(const std::function<void()>& body) {
  const pid_t middle = fork();
  if (middle < 0) return errno;
  if (middle == 0) {
    setsid();
    const pid_t apart = fork();
    if (apart == 0) body();
    _exit(apart >= 0 ? 0 : errno);
  }
  int status = 0;
  while (waitpid(middle, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
}

ssize_t write_without_signal(int fd, std::string_view text) noexcept {
  const SignalBlock blocked{SIGPIPE, SIGXFSZ, SIGTTOU};
  sigset_t before;
  sigemptyset(&before);
  sigpending(&before);
  const ssize_t written = write(fd, text.data(), text.size());
  const int error = errno;
  const int raised = written >= 0 ? 0 : error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
  // A signal that was pending before the write is the caller's.
  if (raised != 0 && sigismember(&before, raised) == 0) {
    const sigset_t own = signal_set({raised});
    const timespec no_wait{};
    sigtimedwait(&own, nullptr, &no_wait);
  }
  errno = error;
  return written;
}

int start_detached(std::function<void()> body) {
  using Body = std::function<void()>;
  auto owned = std::make_unique<Body>(std::move(body));
  auto run = [](void* argument) -> void* {
    const std::unique_ptr<Body> mine(static_cast<Body*>(argument));
    (*mine)();
    return nullptr;
  };
  const SignalBlock all;  // the thread inherits this mask
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, run, owned.get());
  if (error == 0) (void)owned.release();
  pthread_attr_destroy(&attributes);
  return error;
}

SignalBlock::SignalBlock() noexcept {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before_);
}

SignalBlock::SignalBlock(std::initializer_list<int> signals) noexcept {
  const sigset_t only = signal_set(signals);
  pthread_sigmask(SIG_BLOCK, &only, &before_);
}

}  // namespace rlock::util
