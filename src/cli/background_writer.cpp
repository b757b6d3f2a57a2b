#include "cli/background_writer.hpp"

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "util/mutex.hpp"
#include "util/process.hpp"

namespace rlock::cli {

struct BackgroundWriter::Queue {
  const Write write;
  const size_t most;
  int error = 0;  // why the first lost text was lost
  util::Mutex mutex{};
  std::condition_variable changed{};
  std::deque<std::string> texts{};  // the first one may be in the middle of its write
  size_t unwritten = 0;             // bytes of them
  enum class Thread { none, runs, refused } thread = Thread::none;

  void note(int failure) {
    if (error == 0) error = failure;
  }
};

BackgroundWriter::BackgroundWriter(Write write, size_t most)
    : queue_(new Queue{std::move(write), most}) {}

void BackgroundWriter::write_texts(Queue& own) {
  std::unique_lock<std::mutex> lock(own.mutex);
  while (true) {
    own.changed.wait(lock, [&] { return !own.texts.empty(); });
    const std::string text = own.texts.front();
    lock.unlock();
    const int error = own.write(text);
    lock.lock();
    own.note(error);
    own.unwritten -= text.size();
    own.texts.pop_front();
    own.changed.notify_all();
  }
}

void BackgroundWriter::append(std::string text) {
  std::unique_lock<std::mutex> lock(queue_->mutex);
  if (queue_->thread == Queue::Thread::none) {
    const bool started = util::start_detached([queue = queue_] { write_texts(*queue); }) == 0;
    queue_->thread = started ? Queue::Thread::runs : Queue::Thread::refused;
  }
  if (queue_->thread == Queue::Thread::refused) return queue_->note(queue_->write(text));
  if (queue_->unwritten + text.size() > queue_->most) return queue_->note(EBUSY);
  queue_->unwritten += text.size();
  queue_->texts.push_back(std::move(text));
  queue_->changed.notify_all();
}

int BackgroundWriter::drain(Millis timeout) {
  std::unique_lock<std::mutex> lock(queue_->mutex);
  if (!queue_->changed.wait_for(lock, timeout, [&] { return queue_->texts.empty(); })) {
    queue_->note(EBUSY);
  }
  return queue_->error;
}

}  // namespace rlock::cli
