#include "redis/net/secret.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "util/fd.hpp"
#include "util/mutex.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

constexpr Millis kTimeout{5000};
constexpr size_t kLongestLine = 4096;

Error failed(const std::string& why) {
  return {ErrorKind::config, "the password command " + why};
}

// The command that prints the password does not get other passwords or the held locks.
bool is_kept_back(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  return name == "RLOCK_HELD" || is_password_variable(name);
}

std::vector<char*> environment() {
  std::vector<char*> out;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_kept_back(*variable)) out.push_back(*variable);
  }
  out.push_back(nullptr);
  return out;
}

struct SpawnActions {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
  SpawnActions() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

// Starts it in its own session, so that no terminal stops it, and its whole process group can be
// killed.
int spawn(const std::string& command, int out, pid_t& pid) {
  SpawnActions actions;
  const util::Fd null(util::open_null());
  if (!null) return errno;
  posix_spawn_file_actions_adddup2(&actions.files, null.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions.files, out, STDOUT_FILENO);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&actions.attributes, &none);
  posix_spawnattr_setsigdefault(&actions.attributes, &all);
  posix_spawnattr_setflags(&actions.attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string shell = "sh";
  std::string flag = "-c";
  std::string text = command;
  std::array<char*, 4> words{shell.data(), flag.data(), text.data(), nullptr};
  return posix_spawn(&pid, "/bin/sh", &actions.files, &actions.attributes, words.data(),
                     environment().data());
}

// The running command. If rlock is the reaper of orphans, another thread may reap the command
// first; then its exit status is lost.
class SecretProcess {
 public:
  SecretProcess(pid_t pid, util::Fd out)
      : pid_(pid), process_(util::open_pidfd(pid)), out_(std::move(out)) {}
  SecretProcess(const SecretProcess&) = delete;
  SecretProcess& operator=(const SecretProcess&) = delete;
  ~SecretProcess() {
    if (reaped()) return;
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  }

  // Reads the output until the command has exited; false at the deadline.
  bool wait_until(TimePoint deadline) {
    while (!reaped()) {
      if (BootClock::now() >= deadline) return false;
      constexpr Millis kPollInterval{20};  // for kernels without pidfds
      const bool has_pidfd = static_cast<bool>(process_);
      std::array<pollfd, 2> fds{{{out_.get(), POLLIN, 0}, {process_.get(), POLLIN, 0}}};
      poll(fds.data(), fds.size(),
           poll_timeout(
               BootClock::now(),
               has_pidfd ? deadline : std::min(deadline, BootClock::now() + kPollInterval)));
      if (fds[0].revents != 0) read_some();
    }
    while (out_) read_some();
    return true;
  }

  int status() const { return status_; }
  const std::string& output() const { return output_; }

 private:
  bool reaped() {
    if (ended_) return true;
    const pid_t got = waitpid(pid_, &status_, WNOHANG);
    if (got < 0) status_ = 1 << 8;  // its exit status is lost: its output cannot be trusted
    return ended_ = got != 0;
  }

  // Drops output beyond the longest line. Closes the pipe at its end.
  void read_some() {
    std::array<char, 1024> buffer;
    ssize_t got = read(out_.get(), buffer.data(), buffer.size());
    if (got <= 0) return out_.reset();
    if (output_.size() <= kLongestLine) output_.append(buffer.data(), static_cast<size_t>(got));
  }

  const pid_t pid_;
  util::Fd process_;
  util::Fd out_;
  std::string output_;
  int status_ = 0;
  bool ended_ = false;
};

std::optional<Error> exit_error(int status) {
  if (WIFSIGNALED(status)) {
    return failed(util::format("was killed by signal {}", WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) == 0) return std::nullopt;
  return failed(util::format("failed with exit status {}", WEXITSTATUS(status)));
}

// Returns the first line that `command` prints. /bin/sh runs it in its own session, for 5 s at
// most. ErrorKind::config says why there is none.
Result<std::string> run_secret_command(const std::string& command) {
  const TimePoint deadline = BootClock::now() + kTimeout;
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return failed(std::strerror(errno));
  util::Fd out(ends[0]);
  util::Fd in(ends[1]);
  fcntl(out.get(), F_SETFL, O_NONBLOCK);
  pid_t pid = -1;
  if (int error = spawn(command, in.get(), pid); error != 0) {
    return failed(std::string("cannot be started: ") + std::strerror(error));
  }
  in.reset();
  SecretProcess running(pid, std::move(out));
  if (!running.wait_until(deadline))
    return failed(
        "did not finish within 5s, which is the longest that rlock waits for it: make it quicker, "
        "or "
        "let it write a file for --password-file");
  if (auto error = exit_error(running.status())) return *error;
  std::string line = running.output().substr(0, running.output().find('\n'));
  if (line.size() > kLongestLine) return failed("printed a line of more than 4096 bytes");
  if (line.empty())
    return failed("printed no password on its first line; run it by hand as this user");
  return line;
}

Error bad_file(const std::string& path, const std::string& why) {
  return {ErrorKind::config,
          util::format("cannot read the password file \"{}\": {}", util::printable(path), why)};
}

// Other users may read the file, because a secret that is mounted into a container is 0444. But a
// user who can write to it decides how rlock logs in.
Status check_writers(const std::string& path, const util::Fd& file) {
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return bad_file(path, std::strerror(errno));
  if (!S_ISREG(info.st_mode) || (info.st_mode & 022) == 0) return Done{};
  return bad_file(path, "other users can write to it; run chmod go-w " + util::printable(path));
}

Result<std::string> read_secret(const std::string& path, int more_flags = 0) {
  constexpr size_t kLongest = size_t{64} * 1024;  // the path may be /dev/zero
  util::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | more_flags));
  if (!file) return bad_file(path, std::strerror(errno));
  TRY_STATUS(check_writers(path, file));
  auto text = util::read_to_end(file, kLongest);
  if (!text) return bad_file(path, text.error().text);
  if (text->ends_with('\n')) text->pop_back();
  if (text->empty()) return bad_file(path, "it is empty; write the password into it");
  return text;
}

// A source of a password, and when to read it again.
struct Source {
  std::function<Result<std::string>()> read;
  bool at_each_connect = false;
  Millis fetch_interval{0};  // between fetches
};

// Reads on its own thread, which owns everything that it uses, because a command may be slow, and a
// file on a hung mount may never be read.
class SourcedSecret final : public Secret {
 public:
  SourcedSecret(Source source, std::string first) : shared_(std::make_shared<Shared>()) {
    shared_->source = std::move(source);
    shared_->last = std::move(first);
    shared_->event.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }

  std::string current() override {
    std::lock_guard lock(shared_->mutex);
    return shared_->last;
  }

  // Renewals do not wait longer than this for a file. A password that comes later is used once the
  // server refuses the previous one.
  std::optional<TimePoint> refresh() override {
    constexpr Millis kPatience{100};
    constexpr Millis kFresh{1'000};  // what rlock has just read at its start is not read again
    if (!shared_->source.at_each_connect) return std::nullopt;
    std::lock_guard lock(shared_->mutex);
    if (!shared_->running && (BootClock::now() - shared_->read_at < kFresh || !start())) {
      return std::nullopt;
    }
    const TimePoint until = *shared_->began + kPatience;
    return BootClock::now() < until ? std::optional(until) : std::nullopt;
  }

  std::optional<TimePoint> fetch(std::string_view used) override {
    std::lock_guard lock(shared_->mutex);
    if (shared_->last != used) return std::nullopt;
    if (!shared_->running && (fetched_lately() || !start())) return std::nullopt;
    return BootClock::now() + kTimeout;
  }

  bool fetched() const override {
    std::lock_guard lock(shared_->mutex);
    return !shared_->running;
  }
  int fd() const override { return shared_->event.get(); }

 private:
  struct Shared {
    Source source;
    util::Fd event;
    util::Mutex mutex;
    std::string last;
    TimePoint read_at = BootClock::now();
    std::optional<TimePoint> began;  // of the last read by the thread
    bool running = false;
  };

  bool fetched_lately() const {
    return shared_->began && BootClock::now() - *shared_->began < shared_->source.fetch_interval;
  }

  // Call it with the mutex held.
  bool start() {
    eventfd_t before = 0;
    eventfd_read(shared_->event.get(), &before);
    shared_->running = util::start_detached([shared = shared_] { run(*shared); }) == 0;
    if (shared_->running) shared_->began = BootClock::now();
    return shared_->running;
  }

  static void run(Shared& shared) {
    auto secret = shared.source.read();
    std::lock_guard lock(shared.mutex);
    if (secret) shared.last = *std::move(secret);
    shared.read_at = BootClock::now();
    shared.running = false;
    eventfd_write(shared.event.get(), 1);
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace

std::string oddity_of(std::string_view password) {
  std::vector<std::string> odd;
  auto note = [&](bool found, const char* what) {
    if (found) odd.emplace_back(what);
  };
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  const bool quoted = password.size() > 1 && password.front() == password.back() &&
                      (password.front() == '"' || password.front() == '\'');
  const bool ends_in_line = password.ends_with('\r') || password.ends_with('\n');
  note(password.starts_with(kByteOrderMark), "begins with a byte order mark");
  note(password.starts_with(' '), "begins with a space");
  note(password.ends_with("\r") || password.ends_with("\r\n"), "ends with a carriage return");
  note(password.ends_with('\n'), "ends with a newline");
  note(password.ends_with(' '), "ends with a space");
  note(password.ends_with('\t'), "ends with a tab");
  note(quoted, "is in quotes");
  note(password.starts_with("$(") || password.starts_with("${"),
       "begins like a variable that nobody has replaced");
  note(!ends_in_line && std::any_of(password.begin(), password.end(), is_control),
       "contains control characters");
  note(!util::is_utf8(password), "is not UTF-8");
  return odd.empty() ? "" : "it " + util::joined(odd, " and ");
}

Result<std::shared_ptr<Secret>> secret_in_file(const std::string& path) {
  TRY(auto first, read_secret(path));
  // The process that renews for --renew-while works in another folder.
  // A pipe is empty by then: its password stays in use, and the read does not wait for another
  // writer.
  Source file{[path = util::absolute(path)] { return read_secret(path, O_NONBLOCK); }, true};
  return std::shared_ptr<Secret>(
      std::make_shared<SourcedSecret>(std::move(file), std::move(first)));
}

Result<std::shared_ptr<Secret>> secret_of_command(const std::string& command) {
  TRY(auto first, run_secret_command(command));
  Source source{[command] { return run_secret_command(command); }, false, Millis(5000)};
  return std::shared_ptr<Secret>(
      std::make_shared<SourcedSecret>(std::move(source), std::move(first)));
}

}  // namespace rlock::redis
