// Preloaded: a false wall clock. It stands still at the microseconds in the file named by
// CLOCK_FROZEN_FILE, unless that has 0. Else it is off by the seconds in the file named by
// CLOCK_SHIFT_FILE (redis-server), or by CLOCK_SHIFT (a host: each rlock that it starts); time(2)
// and the coarse clock, which lag behind by up to a tick, lag behind by COARSE_CLOCK_LAG seconds
// more. The files are mapped: the next reading of the clock sees a new number.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

// nullptr without the variable or its file. Mapped for the life of the process.
template <class Number>
const volatile Number* mapped_number(const char* variable) {
  const char* path = std::getenv(variable);
  int fd = path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return nullptr;
  void* memory = mmap(nullptr, sizeof(Number), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<const volatile Number*>(memory);
}

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : 0;
}

int64_t frozen() {
  static const volatile int64_t* const micros = mapped_number<int64_t>("CLOCK_FROZEN_FILE");
  return micros != nullptr ? *micros : 0;
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
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (const int64_t micros = frozen(); wall && micros != 0) {
    out->tv_sec = static_cast<time_t>(micros / 1'000'000);
    out->tv_nsec = micros % 1'000'000 * 1000;
    return 0;
  }
  auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, out));
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
