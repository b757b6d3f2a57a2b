#pragma once

#include <mutex>

namespace rlock::util {

// A mutex whose owner runs at the priority of the most urgent thread that waits for it, where the
// kernel can do that: the renewal thread may be of real time, and other threads are not.
class Mutex : public std::mutex {
 public:
  Mutex() noexcept;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  ~Mutex();
};

}  // namespace rlock::util
