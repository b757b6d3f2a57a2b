#include "cli/event_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "cli/output/messages.hpp"
#include "cli/output/record.hpp"
#include "util/fd.hpp"
#include "util/mutex.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// A copy of descriptor 1 or 2 if the path names it, otherwise empty. If another user made the pipe
// behind it, or it is a socket, its path cannot be opened.
util::Fd standard_output(const std::string& path) {
  const int fd = path == "/dev/stdout" ? 1 : path == "/dev/stderr" ? 2 : -1;
  return util::Fd(fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

// Whether a full disk cut off the last line, of this run or of another.
bool ends_amid_a_line(const util::Fd& reader) {
  struct stat info {};
  if (!reader || fstat(reader.get(), &info) != 0 || info.st_size == 0) return false;
  char last = '\n';
  return pread(reader.get(), &last, 1, info.st_size - 1) == 1 && last != '\n';
}

}  // namespace

struct EventLog::Queue {
  util::Fd writer{};  // appends
  util::Fd reader{};  // empty if the log is not a regular file, or may not be read
  int error = 0;      // why the first lost line was lost
  util::Mutex mutex{};
  std::condition_variable changed{};
  std::deque<std::string> lines{};  // the first one may be in the middle of its write
  size_t unwritten = 0;             // bytes of them
  enum class Thread { none, runs, refused } thread = Thread::none;

  void note(int failure) {
    if (error == 0) error = failure;
  }

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

void EventLog::write_lines(Queue& own) {
  std::unique_lock<std::mutex> lock(own.mutex);
  while (true) {
    own.changed.wait(lock, [&] { return !own.lines.empty(); });
    const std::string line = own.lines.front();
    lock.unlock();
    const int error = own.write(line);
    lock.lock();
    own.note(error);
    own.unwritten -= line.size();
    own.lines.pop_front();
    own.changed.notify_all();
  }
}

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
  // Non-blocking, because a named pipe without a reader must hang neither the start nor a renewal.
  auto queue = std::make_shared<Queue>();
  queue->writer.reset(::open(
      path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  const int error = errno;
  if (!queue->writer) queue->writer = standard_output(path);
  if (!queue->writer) {
    return util::system_error(
        util::format("cannot open the event log \"{}\"", util::printable(path)), error);
  }
  struct stat info {};
  if (fstat(queue->writer.get(), &info) == 0 && S_ISREG(info.st_mode)) {
    queue->reader.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  }
  return EventLog(std::move(queue), path, claim, std::move(server));
}

EventLog::EventLog(std::shared_ptr<Queue> queue, std::string path, const lock::AcquireCall& claim,
                   std::string server)
    : queue_(std::move(queue)),
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

Status EventLog::drain(Millis timeout) {
  std::unique_lock<std::mutex> lock(queue_->mutex);
  if (!queue_->changed.wait_for(lock, timeout, [&] { return queue_->lines.empty(); })) {
    queue_->note(EBUSY);
  }
  if (queue_->error == 0) return Done{};
  return util::system_error(
      util::format("the event log \"{}\" lacks events of this run", util::printable(path_)),
      queue_->error);
}

// If no thread can be started, the caller's thread writes. While the file accepts nothing, lines
// beyond kMostUnwritten bytes are lost.
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
  std::string line = event_json(event);
  constexpr size_t kMostUnwritten = 1 << 20;
  std::unique_lock<std::mutex> lock(queue_->mutex);
  if (queue_->thread == Queue::Thread::none) {
    const bool started = util::start_detached([queue = queue_] { write_lines(*queue); }) == 0;
    queue_->thread = started ? Queue::Thread::runs : Queue::Thread::refused;
  }
  if (queue_->thread == Queue::Thread::refused) return queue_->note(queue_->write(line));
  if (queue_->unwritten + line.size() > kMostUnwritten) return queue_->note(EBUSY);
  queue_->unwritten += line.size();
  queue_->lines.push_back(std::move(line));
  queue_->changed.notify_all();
}

}  // namespace rlock::cli
