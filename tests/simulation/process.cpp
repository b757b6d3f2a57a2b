#include "simulation/process.hpp"

#include <algorithm>
#include <utility>

namespace rlock::sim {
namespace {

Task* running = nullptr;

}  // namespace

Task* Process::current() {
  return running;
}

void Process::start(std::function<void()> main) {
  spawn([this, main = std::move(main)] {
    main();
    over_ = true;
  });
}

Task& Process::spawn(std::function<void()> body) {
  auto task = std::make_shared<Task>(*this, std::move(body));
  tasks_.push_back(task);
  queue(task, world_.now());
  return *task;
}

std::shared_ptr<Task> Process::shared(const Task& task) const {
  return *std::find_if(tasks_.begin(), tasks_.end(),
                       [&](const auto& one) { return one.get() == &task; });
}

void Process::queue(const std::shared_ptr<Task>& task, Moment when) {
  if (std::exchange(task->queued, true)) return;
  world_.at(when, [self = shared_from_this(), task] { self->run(task); });
}

void Process::run(const std::shared_ptr<Task>& task) {
  task->queued = false;
  if (task->fiber.finished() || (stopped_ && !dead_)) return;
  ++task->timer;
  running = task.get();
  task->fiber.resume();
  running = nullptr;
  if (!over_) return wake_watchers(*task);
  if (on_end_) std::exchange(on_end_, nullptr)();
}

// The notice of one thread to another is a descriptor that is readable now.
void Process::wake_watchers(const Task& by) {
  for (const auto& task : tasks_) {
    if (task.get() == &by || task->queued || task->watched.empty()) continue;
    if (look(task->watched) > 0) queue(task, world_.now() + 10us);
  }
}

void Process::wake() {
  if (dead_) return;
  for (const auto& task : tasks_) {
    if (!task->queued && !task->fiber.finished())
      queue(task, world_.now() + 1us + chance_.about(20us));
  }
}

void Process::stop() {
  stopped_ = true;
}

void Process::resume() {
  if (!std::exchange(stopped_, false)) return;
  wake();
}

void Process::kill() {
  if (dead_ || over_) return;
  jumped_ = now();
  dead_ = true;
  for (const auto& weak : wires_) {
    if (const WirePtr wire = weak.lock()) close_wire_(wire);
  }
  if (!tasks_.empty()) queue(tasks_.front(), world_.now());
}

void Process::interrupt() {
  interrupted_ = true;
  wake();
}

TimePoint Process::now() const {
  return dead_ ? jumped_ : TimePoint(host_.boot.at(world_.now()));
}

uint64_t Process::wall_micros() const {
  return static_cast<uint64_t>(host_.wall.at(world_.now()).count()) / 1000;
}

int Process::look(std::span<pollfd> fds) const {
  int ready = 0;
  const bool any = std::any_of(fds.begin(), fds.end(), [](const pollfd& fd) { return fd.fd >= 0; });
  if (any) ready = std::max(0, poll(fds.data(), fds.size(), 0));
  for (pollfd& fd : fds) {
    if (!any) fd.revents = 0;
    if (fd.fd != kSignalFd || !(interrupted_ || dead_)) continue;
    fd.revents = POLLIN;
    ++ready;
  }
  return ready;
}

int Process::block(std::span<pollfd> fds, TimePoint until) {
  Task& task = *running;
  if (dead_) {
    jumped_ = std::max(jumped_, until == TimePoint::max() ? jumped_ + 1h : until);
    return look(fds);
  }
  if (const int ready = look(fds); ready > 0) return ready;
  // Also where nothing is waited for some time passes, as it does in a processor.
  Moment when = Moment::max();
  if (until != TimePoint::max()) {
    when = std::max(host_.boot.when(until.time_since_epoch()), world_.now() + 2us);
    world_.at(when, [weak = weak_from_this(), due = shared(task), timer = task.timer] {
      const auto self = weak.lock();
      if (self && due->timer == timer && !due->queued) {
        self->queue(due, self->world_.now() + self->chance_.about(20us));
      }
    });
  }
  task.watched = fds;
  task.fiber.yield();
  task.watched = {};
  return look(fds);
}

void Process::join(Task& task) {
  const auto other = shared(task);
  Task& self = *running;
  while (!other->fiber.finished()) {
    queue(other, world_.now());
    queue(shared(self), world_.now() + 1us);
    self.fiber.yield();
  }
  std::erase(tasks_, other);
}

}  // namespace rlock::sim
