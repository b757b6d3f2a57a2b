// Where the real code meets the simulation: its clocks, poll(2) and threads. The definitions here
// take the place of those in src/util, and the linker leads pthread_create and pthread_join here.
// Outside of simulated processes, where a test starts a real server, they are the system's.
#include <pthread.h>
#include <time.h>

#include "simulation/process.hpp"
#include "util/boot_timer.hpp"
#include "util/clock.hpp"

extern "C" int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                     void* (*body)(void*), void* argument);
extern "C" int __real_pthread_join(pthread_t thread, void** result);

namespace rlock {
namespace {

Nanos system_time(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + Nanos(time.tv_nsec);
}

sim::Process* current() {
  sim::Task* task = sim::Process::current();
  return task == nullptr ? nullptr : &task->process;
}

}  // namespace

BootClock::time_point BootClock::now() noexcept {
  if (const sim::Process* process = current()) return process->now();
  return time_point(system_time(CLOCK_BOOTTIME));
}

uint64_t wall_micros() noexcept {
  if (const sim::Process* process = current()) return process->wall_micros();
  return static_cast<uint64_t>(system_time(CLOCK_REALTIME).count()) / 1000;
}

int poll_timeout(TimePoint now, TimePoint then) noexcept {
  return then <= now ? 0 : 1;
}

namespace util {

BootTimer::BootTimer() noexcept = default;
void BootTimer::arm(TimePoint) noexcept {}

int poll_until(std::span<pollfd> fds, TimePoint until) noexcept {
  if (sim::Process* process = current()) return process->block(fds, until);
  return poll(fds.data(), fds.size(), poll_timeout(BootClock::now(), until));
}

}  // namespace util
}  // namespace rlock

extern "C" int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                     void* (*body)(void*), void* argument) {
  rlock::sim::Process* process = rlock::current();
  if (process == nullptr) return __real_pthread_create(thread, attributes, body, argument);
  auto& task = process->spawn([=] { body(argument); });
  *thread = reinterpret_cast<pthread_t>(&task);
  return 0;
}

extern "C" int __wrap_pthread_join(pthread_t thread, void** result) {
  rlock::sim::Process* process = rlock::current();
  if (process == nullptr) return __real_pthread_join(thread, result);
  process->join(*reinterpret_cast<rlock::sim::Task*>(thread));
  return 0;
}
