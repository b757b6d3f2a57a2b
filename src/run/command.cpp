// Made in rlock, on the main thread. start() runs in the guard, exec_command() in the command.

#include "run/command.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <new>
#include <string_view>

#include "run/run_end.hpp"
#include "util/process.hpp"

namespace rlock::run {
namespace {

constexpr char kShell[] = "/bin/sh";
// sd_watchdog_enabled(3), sd_listen_fds(3) and systemd.exec(5): by these variables a process checks
// whether the service manager means it.
constexpr std::string_view kPidVariables[] = {"WATCHDOG_PID", "LISTEN_PID", "SYSTEMD_EXEC_PID"};
// Names the same process as LISTEN_PID by an inode, which the command does not have.
constexpr std::string_view kListenInode = "LISTEN_PIDFDID";
constexpr size_t kPidDigits = 10;

std::string_view name_of(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

bool has_value(std::string_view entry) {
  return entry.find('=') != entry.npos;
}

bool replaced(const char* inherited, const std::vector<std::string>& added) {
  const std::string_view name = name_of(inherited);
  return std::any_of(added.begin(), added.end(), [name](const std::string& entry) {
    return entry.starts_with(name) && name_of(entry) == name;
  });
}

bool names_pid(std::string_view entry, pid_t pid) {
  const std::string_view name = name_of(entry);
  const bool known = std::find(std::begin(kPidVariables), std::end(kPidVariables), name) !=
                     std::end(kPidVariables);
  return known && has_value(entry) && entry.substr(name.size() + 1) == std::to_string(pid);
}

// Whether to try the next candidate after this failure, as execvp(3) does.
bool try_next(int error) noexcept {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ESTALE ||
         error == ENODEV || error == ETIMEDOUT;
}

}  // namespace

Command::Command(std::vector<std::string> argv, const std::vector<std::string>& added)
    : words_(std::move(argv)), paths_(util::candidates_on_path(words_.front())), added_(added) {
  static char shell[] = "sh";
  shell_argv_ = {shell, nullptr};  // the path is set when it is tried
  for (std::string& word : words_) argv_.push_back(word.data());
  shell_argv_.insert(shell_argv_.end(), argv_.begin() + 1, argv_.end());
  argv_.push_back(nullptr);
  shell_argv_.push_back(nullptr);
  const pid_t rlock = getpid();
  const char* listener = getenv("LISTEN_PID");
  const bool listens = listener != nullptr && listener == std::to_string(rlock);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (listens && name_of(*entry) == kListenInode) continue;
    if (names_pid(*entry, rlock)) {
      own_pids_.push_back(std::string(name_of(*entry)) + "=");
    } else if (!replaced(*entry, added_)) {
      environment_.push_back(*entry);
    }
  }
  for (std::string& entry : own_pids_) {
    entry.reserve(entry.size() + kPidDigits);
    environment_.push_back(entry.data());
  }
  inherited_ = environment_.size();
  for (std::string& entry : added_) {
    if (has_value(entry)) environment_.push_back(entry.data());
  }
  environment_.resize(inherited_ + added_.size() + 1, nullptr);
}

void Command::set_added(char* text, size_t count) noexcept {
  char** next = environment_.data() + inherited_;
  for (count = std::min(count, added_.size()); count > 0; --count) {
    const std::string_view entry = text;
    if (has_value(entry)) *next++ = text;
    text += entry.size() + 1;
  }
  *next = nullptr;
}

struct Command::Start {
  Command& command;
  const Signals& signals;
  SharedState& state;
  Grouping grouping;
  pid_t parent;
};

// As cheap as vfork(2), but an exec that hangs does not hang the guard. The command calls only
// async-signal-safe functions. All signals are blocked until it restores them, because a ^Z must
// not stop it before its exec.
pid_t Command::start(const Signals& signals, SharedState& state, Grouping grouping) noexcept {
  alignas(16) static std::byte stack[size_t{64} * 1024];
  // Static, because both must outlive this call, as the command may.
  alignas(Start) static std::byte room[sizeof(Start)];
  auto* start = new (room) Start{*this, signals, state, grouping, getpid()};
#ifdef __SANITIZE_THREAD__
  // That sanitizer does not support two processes in one memory.
  (void)stack;
  const pid_t pid = _Fork();
  if (pid == 0) exec_command(start);
  return pid;
#else
  return clone(exec_command, stack + sizeof stack, CLONE_VM | SIGCHLD, start);
#endif
}

int Command::exec_command(void* argument) noexcept {
  auto& [command, signals, state, grouping, parent] = *static_cast<Start*>(argument);
  if (grouping == Grouping::own) setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the guard has died already
  state.command.store(getpid());
  if (BootClock::now() >= state.kill_at()) {
    state.exec_error.store(SharedState::kTooLate);
    _exit(127);
  }
  command.set_own_pid();
  signals.restore_in_child();
  state.exec_error.store(command.try_all());
  _exit(127);
}

void Command::set_own_pid() noexcept {
  for (std::string& entry : own_pids_) {
    char digits[kPidDigits];
    entry.append(digits, std::to_chars(digits, digits + sizeof digits, getpid()).ptr);
  }
}

int Command::try_all() noexcept {
  bool denied = false, found = false;
  int error = ENOENT;
  for (const std::string& path : paths_) {
    error = try_one(path.c_str());
    if (!try_next(error)) return error;
    denied = denied || error == EACCES;
    found = found || (error == ENOENT && access(path.c_str(), F_OK) == 0);
  }
  return denied ? EACCES : found ? kNoInterpreter : error;
}

int Command::try_one(const char* path) noexcept {
  execve(path, argv_.data(), environment_.data());
  if (errno != ENOEXEC) return errno;
  shell_argv_[1] = const_cast<char*>(path);  // execve(2) does not write to it
  execve(kShell, shell_argv_.data(), environment_.data());
  return errno;
}

}  // namespace rlock::run
