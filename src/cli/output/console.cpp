#include "cli/output/console.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "cli/output/inherited.hpp"
#include "util/duration.hpp"
#include "util/fd.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// Opens the same pipe or terminal with its own file description, because O_NONBLOCK on the caller's
// description would affect every process that shares it. Files do not block. Sockets cannot be
// opened in this way and are only polled.
util::Fd open_nonblocking(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !(S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode))) return {};
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  return util::Fd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool wait_writable(int fd, TimePoint until) {
  pollfd waited{fd, POLLOUT, 0};
  int ready = poll(&waited, 1, poll_timeout(BootClock::now(), until));
  return ready > 0 && (waited.revents & POLLOUT) != 0;
}

// Returns 0, or the errno of the write that failed. Waits for the reader even if the caller left
// the descriptor non-blocking.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = write(fd, text.data(), text.size());
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
    if (n >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return errno;
    wait_writable(fd, TimePoint::max());
  }
  return 0;
}

size_t write_within(int target, std::string_view text, Millis bound) {
  // A terminal or pipe that polls writable accepts this much immediately.
  constexpr size_t kChunk = 512;
  util::Fd own = open_nonblocking(target);
  const int fd = own ? own.get() : target;
  const TimePoint until = BootClock::now() + bound;
  size_t written = 0;
  while (written < text.size() && wait_writable(fd, until)) {
    ssize_t n = util::write_without_signal(fd, text.substr(written, kChunk));
    if (n < 0 && errno != EAGAIN && errno != EINTR) break;
    if (n > 0) written += static_cast<size_t>(n);
  }
  return written;
}

// Compares the device, because programs whose stderr is another one inherit JOURNAL_STREAM.
// [systemd.exec(5)]
bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat info {};
  return stream != nullptr && fstat(STDERR_FILENO, &info) == 0 &&
         stream == util::format("{}:{}", info.st_dev, info.st_ino);
}

}  // namespace

size_t write_stderr(std::string_view text, Millis bound) {
  return write_within(STDERR_FILENO, text, bound);
}

size_t write_screen(std::string_view text, Millis bound) {
  return write_within(STDOUT_FILENO, text, bound);
}

void print_message(std::string_view message, Weight weight) {
  write_stderr(message_line(message, weight), kFinalPrintTimeout);
}

std::string message_line(std::string_view message, Weight weight) {
  const bool warns = weight == Weight::warning || message.starts_with("warning: ");
  const bool marked = (warns || weight == Weight::error) && stderr_is_journal();
  const char* priority = !marked ? "" : warns ? "<4>" : "<3>";  // see sd-daemon(3)
  return util::format("{}rlock: {}\n", priority, message);
}

Status print(std::string_view text, WithoutReader without_reader) {
  if (text.empty()) return Done{};
  const int error = is_inherited(STDOUT_FILENO) ? write_all(STDOUT_FILENO, text) : EBADF;
  if (error == 0 || (error == EPIPE && without_reader == WithoutReader::ignored)) return Done{};
  return util::system_error("cannot write to stdout", error);
}

bool is_terminal(int fd) {
  return isatty(fd) == 1;
}

bool is_foreground_terminal(int fd) {
  return is_terminal(fd) && tcgetpgrp(fd) == getpgrp();
}

size_t line_width(int fd) {
  constexpr size_t kUnlimited = 4000;
  return is_terminal(fd) ? columns(fd) : kUnlimited;
}

size_t columns(int fd) {
  constexpr size_t kStandard = 80, kLeast = 20;
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kStandard;
  return std::max<size_t>(size.ws_col, kLeast);
}

std::string next_step(const Error& error, std::string_view longer) {
  if (error.kind == ErrorKind::config) {
    switch (error.cause) {
      case Cause::unknown_host:
        return "; correct the host name in the URL (rlock config shows where that is from)";
      case Cause::other_kind:
        return "; correct the URL (rlock config shows where that is from)";
      case Cause::read_only:
        return "; this server is a replica: give the URL of the master";
      case Cause::unknown_master:
        return "; correct the name of the master in the URL";
      default:
        return {};
    }
  }
  std::string text;
  if (error.tried > Millis(0)) {
    constexpr Millis kAsAdvised{60'000};
    const bool given = longer == kLongerConnect && error.tried >= kAsAdvised;
    text = util::format("; rlock tried for {}, and tries for longer with {}",
                        util::format_rough_duration(error.tried),
                        given ? "a longer --connect-timeout" : longer);
  }
  const bool server_failed =
      error.kind == ErrorKind::unavailable || error.kind == ErrorKind::denied;
  if (!server_failed) return text;
  return text + util::format("; rlock doctor checks the server, rlock help {} says what to do",
                             exit_code(error.kind));
}

Status confirm(const std::string& question, const std::string& what) {
  const bool interactive = is_terminal(STDIN_FILENO) && is_terminal(STDERR_FILENO);
  util::Fd terminal(interactive ? open("/dev/tty", O_RDONLY | O_CLOEXEC) : -1);
  if (!terminal) return Error{ErrorKind::usage, "not on a terminal: add --yes to " + what};
  write_stderr(question, Millis(1000));
  // Reads to the end of the line, because the shell would run the rest of a long one.
  std::string answer;
  ssize_t n = 0;
  do {
    char part[64];
    n = read(terminal.get(), part, sizeof part);
    if (n > 0) answer.append(part, static_cast<size_t>(n));
  } while ((n < 0 && errno == EINTR) || (n > 0 && !answer.ends_with('\n')));
  if (n <= 0) write_stderr("\n", Millis(100));  // ^D leaves the cursor after the question
  bool yes = answer == "y\n" || answer == "Y\n" || answer == "yes\n" || answer == "YES\n";
  if (yes) return Done{};
  return Error{ErrorKind::busy, "not confirmed: nothing was changed"};
}

}  // namespace rlock::cli
