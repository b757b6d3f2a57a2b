#include "cli/commands/event_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

#include "cli/output/record.hpp"
#include "cli/output/timestamp.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr size_t kMostUnwritten = 1 << 20;

// A full disk cut off the last line: of this run, or of another one.
bool ends_amid_a_line(const util::Fd& reader) {
  struct stat info {};
  if (!reader || fstat(reader.get(), &info) != 0 || info.st_size == 0) return false;
  char last = '\n';
  return pread(reader.get(), &last, 1, info.st_size - 1) == 1 && last != '\n';
}

// 0, or the error number: a full disk must not end the command.
int write_line(const LogFile& log, std::string line) {
  if (ends_amid_a_line(log.reader)) line.insert(0, 1, '\n');
  ssize_t written = 0;
  do {
    written = write(log.writer.get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return errno;
  return static_cast<size_t>(written) == line.size() ? 0 : ENOSPC;
}

}  // namespace

struct LogWriter::State {
  LogFile log;
  int error = 0;  // why a line was lost: the first one's
  std::mutex mutex{};
  std::condition_variable changed{};
  std::deque<std::string> lines{};  // the first one may be under way
  size_t unwritten = 0;             // bytes of them
  enum class Thread { none, runs, refused } thread = Thread::none;

  void note(int failure) {
    if (error == 0) error = failure;
  }
};

LogWriter::LogWriter(LogFile log) : state_(std::make_shared<State>()) {
  state_->log = std::move(log);
}

void LogWriter::append(std::string line) {
  std::unique_lock lock(state_->mutex);
  if (state_->thread == State::Thread::none) {
    auto shared = std::make_unique<std::shared_ptr<State>>(state_);
    const bool started = util::start_detached(write_lines, shared.get()) == 0;
    if (started) (void)shared.release();
    state_->thread = started ? State::Thread::runs : State::Thread::refused;
  }
  if (state_->thread == State::Thread::refused) {
    return state_->note(write_line(state_->log, std::move(line)));
  }
  if (state_->unwritten + line.size() > kMostUnwritten) return state_->note(EBUSY);
  state_->unwritten += line.size();
  state_->lines.push_back(std::move(line));
  state_->changed.notify_all();
}

int LogWriter::drain(Millis timeout) {
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait_for(lock, timeout, [&] { return state_->lines.empty(); })) {
    state_->note(EBUSY);
  }
  return state_->error;
}

void* LogWriter::write_lines(void* state) {
  const std::unique_ptr<std::shared_ptr<State>> shared(static_cast<std::shared_ptr<State>*>(state));
  State& queue = **shared;
  std::unique_lock lock(queue.mutex);
  while (true) {
    queue.changed.wait(lock, [&] { return !queue.lines.empty(); });
    const std::string line = queue.lines.front();
    lock.unlock();
    const int error = write_line(queue.log, line);
    lock.lock();
    queue.note(error);
    queue.unwritten -= line.size();
    queue.lines.pop_front();
    queue.changed.notify_all();
  }
}

using run::EventKind;

std::string_view to_string(EventKind kind) {
  switch (kind) {
    case EventKind::enqueued:
      return "enqueued";
    case EventKind::acquired:
      return "acquired";
    case EventKind::entered:
      return "entered";
    case EventKind::unlocked:
      return "unlocked";
    case EventKind::renewed:
      return "renewed";
    case EventKind::renew_failed:
      return "renew-failed";
    case EventKind::lost:
      return "lost";
    case EventKind::terminating:
      return "terminating";
    case EventKind::killed:
      return "killed";
    case EventKind::exited:
      return "exited";
    case EventKind::released:
      return "released";
  }
  return "unknown";
}

bool begins_hold(EventKind kind) {
  return kind == EventKind::acquired || kind == EventKind::entered || kind == EventKind::unlocked;
}

namespace {

Millis milliseconds_between(TimePoint from, TimePoint to) {
  return std::chrono::duration_cast<Millis>(to - from);
}

}  // namespace

Result<EventLog> EventLog::open(const std::string& path, const lock::AcquireCall& claim,
                                std::string server) {
  // Non-blocking: a named pipe that nobody reads must hang neither the start nor a renewal.
  util::Fd file(::open(path.c_str(),
                       O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  if (!file) {
    return Error{ErrorKind::system, "cannot open the event log \"" + util::printable(path) +
                                        "\": " + std::strerror(errno)};
  }
  struct stat info {};
  util::Fd reader;
  if (fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode)) {
    reader.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  }
  return EventLog({std::move(file), std::move(reader)}, path, claim, std::move(server));
}

EventLog::EventLog(LogFile file, std::string path, const lock::AcquireCall& claim,
                   std::string server)
    : writer_(std::move(file)),
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
  if (acquired_) {
    logged.held = milliseconds_between(*acquired_, event.at);
  } else if (begins_hold(event.kind)) {
    acquired_ = event.at;
    token_ = event.token;
    logged.waited = milliseconds_between(opened_, event.at);
  }
  append_line(logged, event.at);
}

void EventLog::append_attempt_end(std::string_view event_name, const std::string& detail) {
  const TimePoint now = BootClock::now();
  LoggedEvent logged{event_name};
  logged.detail = detail;
  logged.token = token_;
  if (acquired_) {
    logged.held = milliseconds_between(*acquired_, now);
  } else {
    logged.waited = milliseconds_between(opened_, now);
  }
  append_line(logged, now);
}

Status EventLog::drain(Millis timeout) {
  const int error = writer_.drain(timeout);
  if (error == 0) return Done{};
  return Error{ErrorKind::system, "the event log \"" + util::printable(path_) +
                                      "\" lacks events of this run: " + std::strerror(error)};
}

void EventLog::append_line(LoggedEvent event, TimePoint at) {
  event.t_ns = at.time_since_epoch().count();
  event.time = wall_clock();
  event.run = run_;
  event.server = server_;
  event.name = name_;
  event.owner = owner_;
  writer_.append(event_json(event));
}

}  // namespace rlock::cli
