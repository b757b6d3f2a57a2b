// Preloaded: the wall clock of the program is off, by the seconds in the file named by
// CLOCK_SHIFT_FILE (redis-server; it is mapped: the next reading of the clock sees a new number),
// or by CLOCK_SHIFT (a host: each rlock that it starts). time(2) and the coarse clock, which lag
// behind by up to a tick, lag behind by COARSE_CLOCK_LAG seconds more.
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

#include "support/mapped_file.hpp"

namespace {

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : 0;
}

int shift() {
  static const volatile int* const seconds = mapped_number<int>("CLOCK_SHIFT_FILE");
  if (seconds != nullptr) return *seconds;
  static const int fixed = number_in("CLOCK_SHIFT");
  return fixed;
}

int lag() {
  static const int fixed = number_in("COARSE_CLOCK_LAG");
  return fixed;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, out));
  bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (result == 0 && wall) out->tv_sec += shift();
  if (result == 0 && clock == CLOCK_REALTIME_COARSE) out->tv_sec -= lag();
  return result;
}

extern "C" time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

extern "C" int gettimeofday(timeval* out, void*) noexcept {
  timespec now{};
  int result = clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return result;
}
