#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "simulation/fiber.hpp"
#include "simulation/network.hpp"
#include "simulation/world.hpp"

namespace rlock::sim {

struct Host {
  size_t number;
  Clock boot;  // CLOCK_BOOTTIME: never set
  Clock wall;
};

// For a poller: readable once a signal has come. Negative, so that the kernel never looks at it.
inline constexpr int kSignalFd = -1000;

class Process;

// A thread of a simulated process.
struct Task {
  Task(Process& owner, std::function<void()> body) : process(owner), fiber(std::move(body)) {}
  Process& process;
  Fiber fiber;
  bool queued = false;          // to be resumed
  uint64_t timer = 0;           // only the newest one wakes it
  std::span<pollfd> watched{};  // while it blocks
};

// A process of rlock: the real code, on fibers. Time, poll(2) and threads are the simulation's; see
// seam.cpp.
class Process : public std::enable_shared_from_this<Process> {
 public:
  Process(World& world, const Host& host, uint64_t number)
      : world_(world), host_(host), chance_(world.seed(), 1, number), number_(number) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Whose code runs now; null outside of simulated processes.
  static Task* current();

  void start(std::function<void()> main);
  Task& spawn(std::function<void()> body);
  void join(Task& task);
  bool over() const { return over_; }
  void on_end(std::function<void()> callback) { on_end_ = std::move(callback); }

  // Something has come for it: each of its threads looks.
  void wake();
  // ---- signals ----
  void stop();
  void resume();
  void kill();
  void interrupt();
  bool interrupted() const { return interrupted_; }
  bool dead() const { return dead_; }
  bool stopped() const { return stopped_; }

  // ---- for the seam ----
  TimePoint now() const;
  uint64_t wall_micros() const;
  int block(std::span<pollfd> fds, TimePoint until);

  World& world() { return world_; }
  const Host& host() const { return host_; }
  Chance& chance() { return chance_; }
  uint64_t number() const { return number_; }
  // A connection that it makes: closed for it when it dies.
  void note_wire(const WirePtr& wire) { wires_.push_back(wire); }
  uint64_t next_wire() { return next_wire_++; }
  std::set<size_t>& accepted_by() { return accepted_by_; }
  void on_death(std::function<void(const WirePtr&)> close) { close_wire_ = std::move(close); }

 private:
  void queue(const std::shared_ptr<Task>& task, Moment when);
  void run(const std::shared_ptr<Task>& task);
  int look(std::span<pollfd> fds) const;
  std::shared_ptr<Task> shared(const Task& task) const;
  void wake_watchers(const Task& by);

  World& world_;
  const Host& host_;
  Chance chance_;
  const uint64_t number_;
  std::vector<std::shared_ptr<Task>> tasks_;
  std::vector<std::weak_ptr<Wire>> wires_;
  std::set<size_t> accepted_by_;
  std::function<void(const WirePtr&)> close_wire_;
  std::function<void()> on_end_;
  uint64_t next_wire_ = 0;
  bool stopped_ = false;
  bool interrupted_ = false;
  bool over_ = false;
  // A dead process is run on to its end, where nothing reaches it and nothing leaves it: so that
  // its objects are destroyed. Its clock jumps to whatever it waits for.
  bool dead_ = false;
  TimePoint jumped_{};
};

}  // namespace rlock::sim
