#pragma once

#include <mutex>

namespace rlock::util {

// A mutex whose owner runs at the priority of the most urgent thread that waits for it, if the
// kernel supports that. The renewal thread may have real-time priority, and other threads do not.
class Mutex : public std::mutex {
 public:
  Mutex() noexcept;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  ~Mutex();
};

}  // namespace rlock::util
