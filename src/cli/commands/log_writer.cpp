#include "cli/commands/log_writer.hpp"

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

// A write that fails is ignored: a full disk must not end the command.
void write_line(const util::Fd& file, const std::string& line) {
  while (write(file.get(), line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

}  // namespace

struct LogWriter::State {
  util::Fd file;
  std::mutex mutex{};
  std::condition_variable changed{};
  std::deque<std::string> lines{};  // the first one may be under way
  size_t unwritten = 0;             // bytes of them
  enum class Thread { none, runs, refused } thread = Thread::none;
};

LogWriter::LogWriter(util::Fd file) : state_(std::make_shared<State>()) {
  state_->file = std::move(file);
}

void LogWriter::append(std::string line) {
  std::unique_lock lock(state_->mutex);
  if (state_->thread == State::Thread::none) {
    auto shared = std::make_unique<std::shared_ptr<State>>(state_);
    const bool started = util::start_detached(write_lines, shared.get()) == 0;
    if (started) (void)shared.release();
    state_->thread = started ? State::Thread::runs : State::Thread::refused;
  }
  if (state_->thread == State::Thread::refused) return write_line(state_->file, line);
  if (state_->unwritten + line.size() > kMostUnwritten) return;
  state_->unwritten += line.size();
  state_->lines.push_back(std::move(line));
  state_->changed.notify_all();
}

void LogWriter::drain(Millis timeout) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, timeout, [&] { return state_->lines.empty(); });
}

void* LogWriter::write_lines(void* state) {
  const std::unique_ptr<std::shared_ptr<State>> shared(static_cast<std::shared_ptr<State>*>(state));
  State& queue = **shared;
  std::unique_lock lock(queue.mutex);
  while (true) {
    queue.changed.wait(lock, [&] { return !queue.lines.empty(); });
    const std::string line = queue.lines.front();
    lock.unlock();
    write_line(queue.file, line);
    lock.lock();
    queue.unwritten -= line.size();
    queue.lines.pop_front();
    queue.changed.notify_all();
  }
}

}  // namespace rlock::cli
