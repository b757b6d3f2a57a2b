// Preloaded into redis-server: its wall clock shows the microseconds that the file named by
// SIMULATION_CLOCK holds; the real time while that is 0.
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "support/mapped_file.hpp"

namespace {

int64_t frozen() {
  static const volatile int64_t* const micros = mapped_number<int64_t>("SIMULATION_CLOCK");
  return micros != nullptr ? *micros : 0;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const int64_t micros = frozen();
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (!wall || micros == 0) return static_cast<int>(syscall(SYS_clock_gettime, clock, out));
  out->tv_sec = static_cast<time_t>(micros / 1'000'000);
  out->tv_nsec = micros % 1'000'000 * 1000;
  return 0;
}

extern "C" int gettimeofday(timeval* out, void*) noexcept {
  timespec now{};
  int result = clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return result;
}
