#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace rlock::sim {

// A stack of its own on the one thread: code that blocks in poll(2) blocks here, and nobody else
// does.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Runs it until it yields or ends. From outside of any fiber.
  void resume();
  // From within: back to who resumed it.
  void yield();
  bool finished() const { return finished_; }

 private:
  static void enter(unsigned high, unsigned low);
  void run();

  std::function<void()> body_;
  char* stack_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  bool finished_ = false;
  // What the sanitizers have to know of the switch.
  void* fake_stack_ = nullptr;
  const void* outside_stack_ = nullptr;
  size_t outside_size_ = 0;
  void* inside_track_ = nullptr;
  void* outside_track_ = nullptr;
};

}  // namespace rlock::sim
