#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "lock/poller.hpp"
#include "redis/link/connection.hpp"
#include "redis/net/socket.hpp"
#include "redis/open.hpp"
#include "redis/store/call.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

using util::Fd;

// What the server of a folder holds during its lifetime, so that no second server starts: the lock
// on a file of the folder, and a listening socket (or none), whose peers learn the pid of the
// server.
struct FolderLock {
  Fd lock;
  Fd name;
};

// The descriptors that the server inherits besides 0-2; all higher ones are closed.
constexpr int kLockFd = 3;
constexpr int kNameFd = 4;
constexpr int kReportFd = 5;

// Limits that would stop every server that is started here, sooner or later.
enum class FatalLimit { cpu_time, file_size, contained };

// Sent through the report pipe, which a successful exec closes.
struct Report {
  pid_t pid = 0;
  int error = 0;
  std::optional<FatalLimit> limit{};
};

// The names are relative to the folder in which the server starts, so that blanks in the path and
// the length limit of a socket's name do not matter.
constexpr const char* kOptions[][2] = {
    {"--port", "0"},
    {"--unixsocket", "rlock.sock"},
    {"--unixsocketperm", "700"},
    {"--dir", "."},
    {"--save", ""},
    {"--appendonly", "yes"},
    {"--appendfsync", "always"},
    {"--no-appendfsync-on-rewrite", "no"},
    {"--maxmemory", "0"},
    {"--maxmemory-policy", "noeviction"},
    {"--timeout", "0"},
    {"--daemonize", "no"},
};

std::string find_on_path(const char* name) {
  for (std::string& candidate : util::candidates_on_path(name)) {
    struct stat info {};
    bool file = stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode);
    // An empty or relative entry of PATH would run a program in the current folder.
    if (candidate.front() == '/' && file && access(candidate.c_str(), X_OK) == 0)
      return std::move(candidate);
  }
  return {};
}

// From here to exec only async-signal-safe calls are allowed.

void reset_signals() {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &usual, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

struct Exec {
  const char* folder;
  char* const* argv;
  char* const* environment;
  std::array<int, 6> fds;  // for 0 to kReportFd
};

// Returns false with errno if there are too few descriptors: without that of the lock, another
// server could start in the same folder.
bool arrange_descriptors(std::array<int, 6> fds) {
  // Duplicated to high numbers first, because each of them may have the number that another one
  // needs.
  for (int& fd : fds) {
    fd = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    if (fd < 0) return false;
  }
  close(kNameFd);
  for (int number = 0; number < kReportFd; ++number) dup2(fds[static_cast<size_t>(number)], number);
  dup3(fds[kReportFd], kReportFd, O_CLOEXEC);
  util::close_all_from(kReportFd + 1);
  return true;
}

// The append-only file is rewritten long before it grows to this size.
constexpr rlim_t kEnoughForFiles = rlim_t{1} << 30;

// Removes a limit if allowed, otherwise raises it to the hard limit. Returns the limit that
// remains.
rlim_t lift(__rlimit_resource resource) {
  const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(resource, &none) == 0) return RLIM_INFINITY;
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return RLIM_INFINITY;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(resource, &limit);
  return limit.rlim_max;
}

void reset_oom_score() {
  int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)!write(file, "0", 1);
  close(file);
}

// Other users of the server must not be bound by the resource limits, the niceness and the OOM
// score of the process that happens to start it. Returns a limit that could not be removed.
std::optional<FatalLimit> lift_limits() {
  setpriority(PRIO_PROCESS, 0, 0);
  reset_oom_score();
  for (auto resource : {RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA}) lift(resource);
  if (lift(RLIMIT_CPU) != RLIM_INFINITY) return FatalLimit::cpu_time;
  if (lift(RLIMIT_FSIZE) < kEnoughForFiles) return FatalLimit::file_size;
  return std::nullopt;
}

[[noreturn]] void become_server(const Exec& exec) {
  Report report{getpid()};
  report.limit = lift_limits();
  int line = exec.fds[kReportFd];
  if (arrange_descriptors(exec.fds)) {
    line = kReportFd;
    listen(kNameFd, SOMAXCONN);  // from now on peers of the socket learn this pid
    reset_signals();
    umask(077);
    if (!report.limit && !util::ask_guards_for_exemption()) report.limit = FatalLimit::contained;
    if (!report.limit && chdir(exec.folder) == 0) {
      if (write(kReportFd, &report, sizeof report) < 0) _exit(1);
      execve(exec.argv[0], exec.argv, exec.environment);
    }
  }
  report.error = errno;
  (void)!write(line, &report, sizeof report);
  _exit(1);
}

Error cannot_start(const std::string& program, int error) {
  return {ErrorKind::system,
          util::format("cannot start {} for local: {}", program, std::strerror(error))};
}

Error limit_error(FatalLimit limit) {
  if (limit == FatalLimit::contained) {
    return {ErrorKind::system,
            "local: the server would exit together with the outer run (--contain); start it before "
            "that run, for example with rlock status --url local:"};
  }
  const char* which =
      limit == FatalLimit::cpu_time ? "CPU time (ulimit -Ht)" : "file size (ulimit -Hf)";
  return {ErrorKind::system,
          util::format("local: the hard limit on {} would stop the server; start it once from a "
                       "shell without this limit",
                       which)};
}

Result<pid_t> read_report(const Fd& pipe, const std::string& program) {
  Report report;
  pid_t pid = 0;
  while (true) {
    ssize_t got = read(pipe.get(), &report, sizeof report);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof report)) break;
    if (report.limit) return limit_error(*report.limit);
    if (report.error != 0) return cannot_start(program, report.error);
    pid = report.pid;
  }
  if (pid == 0) return cannot_start(program, EAGAIN);
  return pid;
}

// Starts the server in its own session, not as a child of this process, with default signals, an
// empty environment, only the descriptors for the log, the lock and the name, and without resource
// limits. Returns its pid. ErrorKind::system if the server cannot be started, or if a limit that
// cannot be removed would stop it.
Result<pid_t> start_local_process(const std::string& program, const std::string& folder,
                                  const FolderLock& folder_lock, const Fd& log) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return cannot_start(program, errno);
  Fd reading(ends[0]);
  Fd writing(ends[1]);
  Fd null(util::open_null());
  if (!null) return cannot_start(program, errno);

  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const auto& option : kOptions) {
    for (const char* word : option) argv.push_back(const_cast<char*>(word));
  }
  argv.push_back(nullptr);
  // The server inherits nothing from the caller's environment.
  char language[] = "LC_ALL=C";
  char* environment[] = {language, nullptr};
  const Exec exec{folder.c_str(),
                  argv.data(),
                  environment,
                  {null.get(), log.get(), log.get(), folder_lock.lock.get(), folder_lock.name.get(),
                   writing.get()}};
  const int error = util::run_apart([&] { become_server(exec); });
  if (error != 0) return cannot_start(program, error);
  writing.reset();
  return read_report(reading, program);
}

constexpr Millis kStartLimit{10'000};
constexpr Millis kPollInterval{5};
// A server that does not listen and has slept for this long in total is not starting.
constexpr Millis kAsleepLimit{500};

Error folder_error(const std::string& folder, const std::string& why) {
  return {ErrorKind::config, util::format("local: cannot use {}: {}", folder, why)};
}

// From passwd, not $HOME, which sudo and cron keep or change, because all runs of a user need one
// server.
Result<std::string> folder_of(const std::string& requested) {
  if (!requested.empty()) return requested;
  if (geteuid() == 0) return std::string("/var/lib/rlock");
  std::array<char, 16'384> buffer;
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr || found->pw_dir == nullptr || found->pw_dir[0] != '/') {
    return Error{ErrorKind::config, "local: this user has no home directory; use local:DIR"};
  }
  return std::string(found->pw_dir) + "/.local/state/rlock";
}

Status make_folders(const std::string& folder) {
  for (size_t slash = 1; slash != std::string::npos;) {
    slash = folder.find('/', slash + 1);
    std::string part = folder.substr(0, slash);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return folder_error(folder, util::format("mkdir {}: {}", part, std::strerror(errno)));
    }
  }
  return Done{};
}

// Another user with write permission there could replace the server.
Status check_folder(const std::string& folder) {
  struct stat info {};
  if (stat(folder.c_str(), &info) != 0) return folder_error(folder, std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) return folder_error(folder, "it is not a folder");
  if (info.st_uid != geteuid()) return folder_error(folder, "another user owns it");
  if ((info.st_mode & 077) != 0)
    return folder_error(folder, "other users can enter it; run chmod 700 " + folder);
  return Done{};
}

Result<std::string> safe_folder(const std::string& requested, LocalStart start) {
  TRY(auto folder, folder_of(requested));
  bool missing = access(folder.c_str(), F_OK) != 0;
  if (missing && start != LocalStart::forbidden) TRY_STATUS(make_folders(folder));
  TRY_STATUS(check_folder(folder));
  return folder;
}

bool is_listening(const Address& address) {
  return start_connect(address).state != ConnectState::failed;
}

// An abstract socket, because no cleaner of old files can remove it. It names the folder above by
// inode, because containers that share a network have different paths.
std::optional<Address> name_address(const std::string& folder) {
  std::unique_ptr<char, decltype(&free)> real(realpath(folder.c_str(), nullptr), &free);
  const std::string path = real ? real.get() : folder;
  const size_t slash = path.rfind('/');
  struct stat above {};
  if (stat(path.substr(0, slash + 1).c_str(), &above) != 0) return std::nullopt;
  return unix_address(std::string(1, '\0') + util::format("rlock:{}:{}{}", above.st_dev,
                                                          above.st_ino, path.substr(slash)));
}

// Empty if the name is taken, or if a sandbox forbids the socket.
Fd bind_name(const Address& address) {
  Fd name(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* to = reinterpret_cast<const sockaddr*>(&address.storage);
  if (!name || bind(name.get(), to, address.length) != 0) return {};
  return listen(name.get(), SOMAXCONN) == 0 ? std::move(name) : Fd();
}

// The pid of the server that has the name; 0 if this user runs none. No server accepts the
// connection.
pid_t owner_of(const Address& name) {
  ConnectAttempt attempt = start_connect(name);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (attempt.state != ConnectState::connected ||
      getsockopt(attempt.fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return 0;
  }
  return peer.uid == geteuid() ? peer.pid : 0;
}

Error no_socket(const std::string& folder, pid_t server) {
  return {ErrorKind::unavailable,
          util::format("local: the server of {}{} does not listen on rlock.sock there; the socket "
                       "may have been removed; when no run uses its locks, stop it with kill{}",
                       folder, server > 0 ? util::format(" (pid {})", server) : "",
                       server > 0 ? util::format(" {}", server) : "")};
}

Result<Fd> open_in(const std::string& folder, const std::string& name, int flags) {
  Fd file(::open((folder + "/" + name).c_str(), flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file) return file;
  return folder_error(folder, util::format("{}: {}", name, std::strerror(errno)));
}

// nullopt if another process has started the server in the meantime.
Result<std::optional<FolderLock>> lock_folder(const std::string& folder, const Address& address,
                                              TimePoint deadline) {
  TRY(auto lock, open_in(folder, "rlock.lock", O_RDWR));
  const auto name = name_address(folder);
  pid_t server = 0;
  Millis asleep{0};
  while (true) {
    const bool locked = flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
    if (is_listening(address)) return std::optional<FolderLock>();
    Fd bound = locked && name ? bind_name(*name) : Fd();
    // Found even if the server's lock file was removed. If another user has taken the name, that
    // does not prevent a start.
    const pid_t owner = bound || !name ? 0 : owner_of(*name);
    if (locked && owner == 0) return std::optional<FolderLock>({std::move(lock), std::move(bound)});
    if (std::exchange(server, owner) != owner) asleep = Millis(0);
    // A server that is starting works, or waits for the processor or the disk.
    const auto running = owner > 0 ? util::read_stat(owner) : std::nullopt;
    if (running && running->state == 'S') asleep += kPollInterval;
    if (asleep >= kAsleepLimit || BootClock::now() >= deadline) return no_socket(folder, owner);
    std::this_thread::sleep_for(kPollInterval);
  }
}

// False while the server is loading its data: then it answers LOADING.
bool answers_ping(Connection& connection, TimePoint deadline) {
  auto any = [](const redisReply&) { return std::optional<Result<Done>>(Done{}); };
  auto ping =
      std::make_unique<Call<Done>>(connection, std::vector<std::string>{"PING"}, "ask", any);
  lock::SystemPoller poller;
  return bool(lock::finish<Done>(poller, std::move(ping), deadline, connection.label()));
}

// Waits a moment for the process to exit, and returns true if it has. Without a pidfd (denied by a
// seccomp filter) its exit is not noticed before the deadline.
bool has_exited(const Fd& process) {
  pollfd entry{process.get(), POLLIN, 0};
  return poll(&entry, 1, static_cast<int>(kPollInterval.count())) > 0;
}

Status await_server(const Server& server, pid_t pid, const std::string& log, TimePoint deadline) {
  Fd process = util::open_pidfd(pid);
  bool exited = !process && errno == ESRCH;
  Connection connection(server);
  while (!answers_ping(connection, deadline)) {
    if (exited || has_exited(process)) {
      return Error{ErrorKind::system, "local: the server exited immediately; see " + log};
    }
    if (BootClock::now() >= deadline) {
      return Error{ErrorKind::unavailable, "local: the server does not answer; see " + log};
    }
  }
  return Done{};
}

// Room for the files of a new server and some hundred acquisitions; less if this process's own
// limit (ulimit -f) is lower, which does not apply to the server.
size_t probe_size() {
  constexpr size_t kRoom = size_t{64} * 1024;
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return kRoom;
  return static_cast<size_t>(std::min<rlim_t>(kRoom, limit.rlim_cur));
}

// On a full disk the server would exit, and could not even write the reason to its log.
Status check_disk_space(const Fd& lock, const std::string& folder) {
  const std::string zeros(probe_size(), '\0');
  ssize_t written = pwrite(lock.get(), zeros.data(), zeros.size(), 0);
  const int error = written < 0 ? errno : ENOSPC;
  bool emptied = ftruncate(lock.get(), 0) == 0;
  if (written == static_cast<ssize_t>(zeros.size()) && emptied) return Done{};
  return Error{ErrorKind::unavailable, util::format("local: the server cannot write to {}: {}",
                                                    folder, std::strerror(error))};
}

Status start_server(const Server& server, const std::string& folder, const Address& address,
                    TimePoint deadline) {
  TRY(auto folder_lock, lock_folder(folder, address, deadline));
  if (!folder_lock) return Done{};
  std::string program = find_on_path("redis-server");
  if (program.empty()) program = find_on_path("valkey-server");
  if (program.empty()) {
    return Error{ErrorKind::config,
                 "local: redis-server or valkey-server must be on PATH (apt install redis-server)"};
  }
  TRY_STATUS(check_disk_space(folder_lock->lock, folder));
  TRY(auto log, open_in(folder, "rlock.log", O_WRONLY | O_APPEND));
  TRY(auto pid, start_local_process(program, folder, *folder_lock, log));
  return await_server(server, pid, folder + "/rlock.log", deadline);
}

// For holders and waiters of a server that was killed: they ask again for as long as their limits
// allow.
Status revive(Server server, const std::string& folder, const Address& address) {
  if (is_listening(address)) return Done{};
  server.revive = nullptr;
  auto started = [&]() -> Status {
    TRY_STATUS(safe_folder(folder, LocalStart::allowed));
    return start_server(server, folder, address, BootClock::now() + server.connect_timeout);
  }();
  if (started) return started;
  Error why = std::move(started).error();
  why.retry = Retry::later;
  return why;
}

}  // namespace

Result<Server> local_server(const std::string& requested, LocalStart start) {
  TRY(auto folder, safe_folder(requested, start));
  Server server;
  server.path = folder + "/rlock.sock";
  auto address = unix_address(server.path);
  if (!address) return folder_error(folder, "the path is too long for a socket (at most 96 bytes)");
  if (start == LocalStart::forbidden) {
    if (is_listening(*address)) return server;
    return Error{ErrorKind::unavailable, "local: no server is running in " + folder};
  }
  if (!is_listening(*address)) {
    TRY_STATUS(start_server(server, folder, *address, BootClock::now() + kStartLimit));
  }
  server.revive = [folder, address = *address](const Server& ended) {
    return revive(ended, folder, address);
  };
  return server;
}

Result<bool> stop_local_server(const std::string& requested) {
  TRY(auto folder, folder_of(requested));
  if (access(folder.c_str(), F_OK) != 0) return false;
  TRY_STATUS(check_folder(folder));
  auto address = unix_address(folder + "/rlock.sock");
  if (!address || !is_listening(*address)) {
    const auto name = name_address(folder);
    const pid_t hidden = name ? owner_of(*name) : 0;
    if (hidden > 0) return no_socket(folder, hidden);
    return false;
  }
  const pid_t pid = owner_of(*address);
  const Fd process = pid > 0 ? util::open_pidfd(pid) : Fd();
  // Checked again, now that the pid cannot be reused for another process.
  if (pid == 0 || owner_of(*address) != pid || kill(pid, SIGTERM) != 0) {
    return Error{ErrorKind::unavailable,
                 util::format("local: rlock cannot stop the server of {} from here: it may run in "
                              "another container",
                              folder)};
  }
  const TimePoint deadline = BootClock::now() + kStartLimit;
  while (kill(pid, 0) == 0 && !(process && has_exited(process))) {
    if (!process) std::this_thread::sleep_for(kPollInterval);
    if (BootClock::now() < deadline) continue;
    return Error{ErrorKind::unavailable,
                 util::format("local: the server of {0} (pid {1}) does not exit; see {0}/rlock.log",
                              folder, pid)};
  }
  return true;
}

}  // namespace rlock::redis
