#include "redis/local/local.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "redis/link/connection.hpp"
#include "redis/local/local_process.hpp"
#include "redis/net/socket.hpp"
#include "util/clock.hpp"
#include "util/file.hpp"

namespace rlock::redis {
namespace {

// Locked by the server as long as it lives, so that no second one starts.
constexpr char kLockFile[] = "rlock.lock";

using util::Fd;

constexpr Millis kStartLimit{10'000};
constexpr Millis kPollInterval{5};

Error folder_error(const std::string& folder, const std::string& why) {
  return {ErrorKind::config, "local: cannot use " + folder + ": " + why};
}

// From passwd, not $HOME, which sudo and cron keep or change: all runs of a user need one server.
Result<std::string> default_folder() {
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
      return folder_error(folder, "mkdir " + part + ": " + std::strerror(errno));
    }
  }
  return Done{};
}

// A user who can write there can replace the server by another one.
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
  auto named = requested.empty() ? default_folder() : Result<std::string>(requested);
  if (!named) return named;
  std::string folder = std::move(*named);
  bool missing = access(folder.c_str(), F_OK) != 0;
  if (missing && start != LocalStart::forbidden) TRY_STATUS(make_folders(folder));
  TRY_STATUS(check_folder(folder));
  return folder;
}

bool is_listening(const Address& address) {
  ConnectState state = start_connect(address).state;
  return state != ConnectState::failed;
}

void sleep_briefly() {
  timespec time{0, std::chrono::nanoseconds(kPollInterval).count()};
  nanosleep(&time, nullptr);
}

// The lock, or none where another process has started the server meanwhile.
Result<std::optional<Fd>> lock_or_server(const std::string& folder, const Address& address,
                                         TimePoint deadline) {
  std::string path = folder + "/" + kLockFile;
  Fd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return folder_error(folder, "rlock.lock: " + std::string(std::strerror(errno)));
  while (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (is_listening(address)) return std::optional<Fd>();
    if (BootClock::now() >= deadline) {
      return Error{ErrorKind::unavailable,
                   "local: a server runs in " + folder + " but does not listen on its socket"};
    }
    sleep_briefly();
  }
  if (is_listening(address)) return std::optional<Fd>();
  return std::optional<Fd>(std::move(lock));
}

// False while the server still loads its data: then it answers LOADING.
bool answers_ping(Connection& connection, TimePoint deadline) {
  connection.start({"PING"});
  while (!connection.advance(BootClock::now())) {
    if (BootClock::now() >= deadline) return false;
    std::vector<pollfd> fds;
    connection.wants(fds);
    poll(fds.data(), fds.size(),
         poll_timeout(BootClock::now(), std::min(deadline, connection.due())));
  }
  auto reply = connection.take();
  return reply && (*reply)->type != REDIS_REPLY_ERROR;
}

// Waits a moment for the end of the process; true when it has ended. Without a pidfd (denied by a
// seccomp filter) its end is not noticed before the deadline.
bool has_exited(const Fd& process) {
  pollfd entry{process.get(), POLLIN, 0};
  return poll(&entry, 1, static_cast<int>(kPollInterval.count())) > 0;
}

Status await_server(const Server& server, pid_t pid, const std::string& log, TimePoint deadline) {
  Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  bool exited = !process && errno == ESRCH;
  Connection connection(server);
  while (!answers_ping(connection, deadline)) {
    if (exited || has_exited(process)) {
      return Error{ErrorKind::system, "local: the server exited at once; see " + log};
    }
    if (BootClock::now() >= deadline) {
      return Error{ErrorKind::unavailable, "local: the server does not answer; see " + log};
    }
  }
  return Done{};
}

// Room for the files of a new server and some hundred acquisitions. Less where our own limit
// (ulimit -f) is lower, which does not apply to the server.
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
  return Error{ErrorKind::unavailable,
               "local: the server cannot write to " + folder + ": " + std::strerror(error)};
}

Status start_server(const Server& server, const std::string& folder, const Address& address) {
  TimePoint deadline = BootClock::now() + kStartLimit;
  TRY(auto lock, lock_or_server(folder, address, deadline));
  if (!lock) return Done{};
  std::string program = find_server_program();
  if (program.empty()) {
    return Error{ErrorKind::config,
                 "local: redis-server or valkey-server must be on PATH (apt install redis-server)"};
  }
  if (auto room = check_disk_space(*lock, folder); !room) return room;
  std::string log_path = folder + "/rlock.log";
  Fd log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) return folder_error(folder, "rlock.log: " + std::string(std::strerror(errno)));
  auto pid = start_local_process({program, folder, *lock, log});
  if (!pid) return std::move(pid).error();
  return await_server(server, *pid, log_path, deadline);
}

}  // namespace

Result<Server> local_server(const std::string& requested, LocalStart start) {
  TRY(auto folder, safe_folder(requested, start));
  Server server;
  server.transport = Transport::unix_socket;
  server.path = folder + "/rlock.sock";
  auto address = unix_address(server.path);
  if (!address) return folder_error(folder, "the path is too long for a socket (at most 96 bytes)");
  if (is_listening(*address)) return server;
  if (start == LocalStart::forbidden) {
    return Error{ErrorKind::unavailable, "local: no server is running in " + folder};
  }
  TRY_STATUS(start_server(server, folder, *address));
  return server;
}

}  // namespace rlock::redis
