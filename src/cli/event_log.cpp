#include "cli/event_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "cli/output/inherited.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "util/fd.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr size_t kMostUnwritten = size_t{1} << 20;

// Whether both descriptors lead to the same file, pipe, socket or terminal.
bool are_same(int one, int other) {
  struct stat a {};
  struct stat b {};
  return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

// Returns an empty descriptor, with errno, if the log cannot be opened.
util::Fd open_writer(const std::string& path) {
  const int inherited = inherited_descriptor(path);
  const auto copy = [inherited] { return util::Fd(fcntl(inherited, F_DUPFD_CLOEXEC, 0)); };
  // Opened anew, a file would have a second position, from which other lines are overwritten.
  if (util::is_regular_file(inherited)) return copy();
  // Non-blocking, because a named pipe without a reader must hang neither the start nor a renewal.
  util::Fd writer(::open(path.c_str(),
                         O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  const int error = errno;
  // The path of a socket, and of a pipe that another user made, cannot be opened.
  if (!writer && inherited >= 0) return copy();
  errno = error;
  return writer;
}

// Whether a full disk cut off the last line, of this run or of another.
bool ends_amid_a_line(const util::Fd& reader) {
  struct stat info {};
  if (!reader || fstat(reader.get(), &info) != 0 || info.st_size == 0) return false;
  char last = '\n';
  return pread(reader.get(), &last, 1, info.st_size - 1) == 1 && last != '\n';
}

}  // namespace

struct EventLog::File {
  util::Fd writer{};  // appends
  util::Fd reader{};  // empty if the log is not a regular file, or may not be read

  // Returns 0 or the errno: a full disk must not stop the command.
  int write(std::string line) const {
    if (ends_amid_a_line(reader)) line.insert(0, 1, '\n');
    ssize_t written = 0;
    do {
      written = ::write(writer.get(), line.data(), line.size());
    } while (written < 0 && errno == EINTR);
    if (written < 0) return errno;
    return static_cast<size_t>(written) == line.size() ? 0 : ENOSPC;
  }
};

using run::EventKind;

std::string_view to_string(EventKind kind) {
  return util::to_string<EventKind::released>(
      kind, {"enqueued", "acquired", "entered", "unlocked", "renewed", "renew-failed", "lost",
             "terminating", "killed", "exited", "released"});
}

bool begins_hold(EventKind kind) {
  return kind == EventKind::acquired || kind == EventKind::entered || kind == EventKind::unlocked;
}

Result<EventLog> EventLog::open(const std::string& path, const lock::AcquireCall& claim,
                                std::string server) {
  auto file = std::make_shared<File>();
  file->writer = open_writer(path);
  if (!file->writer) {
    return util::system_error(
        util::format("cannot open the event log \"{}\"", util::printable(path)), errno);
  }
  const bool is_stderr = are_same(file->writer.get(), STDERR_FILENO);
  if (util::is_regular_file(file->writer.get())) {
    file->reader.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  }
  EventLog log(std::move(file), path, claim, std::move(server));
  log.is_stderr_ = is_stderr;
  return log;
}

EventLog::EventLog(std::shared_ptr<const File> file, std::string path,
                   const lock::AcquireCall& claim, std::string server)
    : writer_([file = std::move(file)](const std::string& line) { return file->write(line); },
              kMostUnwritten),
      path_(std::move(path)),
      name_(claim.name.text()),
      owner_(claim.owner.text()),
      server_(util::to_utf8(server)),
      run_(decode_record(claim.record)),
      opened_(BootClock::now()) {}

void EventLog::append(const run::Event& event) {
  if (event.owner) owner_ = event.owner->text();
  LoggedEvent logged{to_string(event.kind)};
  logged.token = event.token;
  logged.detail = event.detail;
  if (event.end) {
    if (const auto* exited = std::get_if<run::Exited>(&*event.end)) logged.exit_code = exited->code;
    if (const auto* by = std::get_if<run::Signaled>(&*event.end)) logged.signal = by->signal;
  }
  const bool begins = !acquired_ && begins_hold(event.kind);
  append_line(logged, event.at, begins);
  if (!begins) return;
  acquired_ = event.at;
  token_ = event.token;
}

void EventLog::append_attempt_end(std::string_view event_name, const std::string& detail) {
  LoggedEvent logged{event_name};
  logged.detail = detail;
  logged.token = token_;
  append_line(logged, BootClock::now(), true);
}

void EventLog::append_message(std::string_view message) {
  LoggedEvent logged{"message"};
  logged.detail = message;
  logged.token = token_;
  append_line(logged, BootClock::now(), false);
}

Status EventLog::drain(Millis timeout) {
  const int error = writer_.drain(timeout);
  if (error == 0) return Done{};
  return util::system_error(
      util::format("the event log \"{}\" lacks events of this run", util::printable(path_)), error);
}

void EventLog::append_line(LoggedEvent event, TimePoint at, bool ends_wait) {
  const auto passed = std::chrono::duration_cast<Millis>(at - acquired_.value_or(opened_));
  if (acquired_) {
    event.held = passed;
  } else if (ends_wait) {
    event.waited = passed;
  }
  event.t_ns = at.time_since_epoch().count();
  event.time = wall_clock();
  event.run = run_;
  event.server = server_;
  event.name = name_;
  event.owner = owner_;
  writer_.append(event_json(event));
}

}  // namespace rlock::cli
