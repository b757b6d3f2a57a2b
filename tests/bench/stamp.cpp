// stamp FILE MILLISECONDS: holds for that long, then appends "START END PID" to FILE
// (CLOCK_MONOTONIC, ns).
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

long long now() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * 1'000'000'000LL + ts.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) {
  long long start = now();
  if (argc != 3) return 64;
  int fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return 71;
  usleep(static_cast<useconds_t>(std::atoi(argv[2])) * 1000);
  char line[96];
  int length = std::snprintf(line, sizeof line, "%lld %lld %d\n", start, now(), getpid());
  return write(fd, line, static_cast<size_t>(length)) == length ? 0 : 71;
}
