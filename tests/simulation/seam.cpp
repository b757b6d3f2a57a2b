// Where the real code meets the simulation: its clocks, poll(2) and threads. The definitions here
// take the place of those in src/util, and the linker leads pthread_create and pthread_join here.
#include <pthread.h>

#include "simulation/process.hpp"
#include "util/boot_timer.hpp"
#include "util/clock.hpp"

namespace rlock {

BootClock::time_point BootClock::now() noexcept {
  return sim::Process::current().process.now();
}

uint64_t wall_micros() noexcept {
  return sim::Process::current().process.wall_micros();
}

int poll_timeout(TimePoint, TimePoint) noexcept {
  return 0;
}

namespace util {

BootTimer::BootTimer() noexcept = default;
void BootTimer::arm(TimePoint) noexcept {}

int poll_until(std::span<pollfd> fds, TimePoint until) noexcept {
  return sim::Process::current().process.block(fds, until);
}

}  // namespace util
}  // namespace rlock

extern "C" int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t*,
                                     void* (*body)(void*), void* argument) {
  auto& task = rlock::sim::Process::current().process.spawn([=] { body(argument); });
  *thread = reinterpret_cast<pthread_t>(&task);
  return 0;
}

extern "C" int __wrap_pthread_join(pthread_t thread, void**) {
  auto& task = *reinterpret_cast<rlock::sim::Task*>(thread);
  rlock::sim::Process::current().process.join(task);
  return 0;
}
