#include "cli/commands/log_writer.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "util/detached.hpp"

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

}  // namespace rlock::cli
