#include "redis/local/local_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "util/exemption.hpp"

namespace rlock::redis {
namespace {

using util::Fd;

// The descriptors that the server inherits besides 0-2; all higher ones are closed.
constexpr int kLockFd = 3;
constexpr int kNameFd = 4;
constexpr int kReportFd = 5;

// What ends every server that is started here, sooner or later.
enum class FatalLimit { cpu_time, file_size, contained };

// Sent through the report pipe, which a successful exec closes.
struct Report {
  pid_t pid = 0;
  int error = 0;
  std::optional<FatalLimit> limit{};
};

// Relative names: the server starts in its folder, so that blanks in the path and the length limit
// of a socket's name do not matter.
constexpr const char* kOptions[] = {"--port",
                                    "0",
                                    "--unixsocket",
                                    "rlock.sock",
                                    "--unixsocketperm",
                                    "700",
                                    "--dir",
                                    ".",
                                    "--save",
                                    "",
                                    "--appendonly",
                                    "yes",
                                    "--appendfsync",
                                    "always",
                                    "--no-appendfsync-on-rewrite",
                                    "no",
                                    "--maxmemory",
                                    "0",
                                    "--maxmemory-policy",
                                    "noeviction",
                                    "--timeout",
                                    "0",
                                    "--daemonize",
                                    "no"};
constexpr size_t kOptionCount = sizeof kOptions / sizeof *kOptions;

std::string find_on_path(std::string_view path, const char* name) {
  while (!path.empty()) {
    size_t end = path.find(':');
    std::string candidate = std::string(path.substr(0, end)) + "/" + name;
    struct stat info {};
    bool file = stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode);
    // An empty or relative entry of PATH would run a program in the current folder.
    if (candidate.front() == '/' && file && access(candidate.c_str(), X_OK) == 0) return candidate;
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
  }
  return {};
}

// From here to exec: async-signal-safe calls only.

void reset_signals() {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &usual, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void arrange_descriptors(int null, int log, int lock, int name, int report) {
  // Duplicated to high numbers first: any of them may have the number that another one needs.
  null = fcntl(null, F_DUPFD_CLOEXEC, 10);
  log = fcntl(log, F_DUPFD_CLOEXEC, 10);
  lock = fcntl(lock, F_DUPFD_CLOEXEC, 10);
  name = fcntl(name, F_DUPFD_CLOEXEC, 10);
  report = fcntl(report, F_DUPFD_CLOEXEC, 10);
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  dup2(lock, kLockFd);
  close(kNameFd);
  dup2(name, kNameFd);
  dup3(report, kReportFd, O_CLOEXEC);
  if (close_range(kReportFd + 1, ~0U, 0) == 0) return;
  // Linux before 5.9.
  long most = sysconf(_SC_OPEN_MAX);
  for (int fd = kReportFd + 1; fd < most; ++fd) close(fd);
}

struct Exec {
  const char* folder;
  char* const* argv;
  char* const* environment;
  int null, log, lock, name, report;
};

// The append-only file is rewritten long before it grows to this size.
constexpr rlim_t kEnoughForFiles = rlim_t{1} << 30;

// Lifts a limit altogether where allowed, else up to the hard limit; the limit that remains.
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
  int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)!write(file, "0", 1);
  close(file);
}

// Other users of the server must not be bound by the resource limits, the niceness and the OOM
// score of the process that happens to start it. Returns a limit that could not be lifted.
std::optional<FatalLimit> lift_limits() {
  setpriority(PRIO_PROCESS, 0, 0);
  reset_oom_score();
  for (auto resource : {RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA}) lift(resource);
  if (lift(RLIMIT_CPU) != RLIM_INFINITY) return FatalLimit::cpu_time;
  if (lift(RLIMIT_FSIZE) < kEnoughForFiles) return FatalLimit::file_size;
  return std::nullopt;
}

[[noreturn]] void become_server(const Exec& exec) {
  arrange_descriptors(exec.null, exec.log, exec.lock, exec.name, exec.report);
  listen(kNameFd, SOMAXCONN);  // from now on its peers get this pid
  reset_signals();
  umask(077);
  Report report{getpid()};
  report.limit = lift_limits();
  if (!report.limit && !util::ask_guards_for_exemption()) report.limit = FatalLimit::contained;
  if (!report.limit && chdir(exec.folder) == 0) {
    if (write(kReportFd, &report, sizeof report) < 0) _exit(1);
    execve(exec.argv[0], exec.argv, exec.environment);
  }
  report.error = errno;
  (void)!write(kReportFd, &report, sizeof report);
  _exit(1);
}

// The child of the first fork becomes a session leader and exits at once, so that the server can
// never get a terminal and is adopted by init.
pid_t fork_server(const Exec& exec) {
  pid_t middle = fork();
  if (middle != 0) return middle;
  setsid();
  pid_t server = fork();
  if (server == 0) become_server(exec);
  _exit(server > 0 ? 0 : errno);
}

Error cannot_start(const std::string& program, int error) {
  return {ErrorKind::system, "cannot start " + program + " for local: " + std::strerror(error)};
}

Error limit_error(FatalLimit limit) {
  if (limit == FatalLimit::contained) {
    return {ErrorKind::system,
            "local: the run around this one (--contain) would end the server with itself; start it "
            "before, for example by rlock status --url local:"};
  }
  const char* which =
      limit == FatalLimit::cpu_time ? "CPU time (ulimit -Ht)" : "file size (ulimit -Hf)";
  return {ErrorKind::system,
          std::string("local: the hard limit on ") + which +
              " would end the server; start it once from a shell without this limit"};
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

}  // namespace

std::string find_server_program() {
  const char* path = getenv("PATH");
  if (path == nullptr) return {};
  std::string redis = find_on_path(path, "redis-server");
  return redis.empty() ? find_on_path(path, "valkey-server") : redis;
}

Result<pid_t> start_local_process(const LocalProcess& process) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return cannot_start(process.program, errno);
  Fd reading(ends[0]);
  Fd writing(ends[1]);
  Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return cannot_start(process.program, errno);

  char* argv[kOptionCount + 2] = {const_cast<char*>(process.program.c_str())};
  for (size_t i = 0; i < kOptionCount; ++i) argv[i + 1] = const_cast<char*>(kOptions[i]);
  // Nothing from the caller's environment.
  char language[] = "LC_ALL=C";
  char* environment[] = {language, nullptr};
  pid_t middle =
      fork_server({process.folder.c_str(), argv, environment, null.get(), process.log.get(),
                   process.lock.get(), process.name.get(), writing.get()});
  if (middle < 0) return cannot_start(process.program, errno);
  writing.reset();
  while (waitpid(middle, nullptr, 0) < 0 && errno == EINTR) continue;
  return read_report(reading, process.program);
}

}  // namespace rlock::redis
