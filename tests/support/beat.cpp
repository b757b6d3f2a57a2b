// beat FILE MILLISECONDS LIMIT: a command that leaves its trace. Appends, each in one write,
//   start NS PID TOKEN OWNER LIMIT, then every 5 ms beat NS PID, and at its own end stop NS PID
// (CLOCK_MONOTONIC): the last line of a PID is the latest moment at which it surely ran.
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

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "-";
}

void append(int fd, const char* word, const char* rest) {
  char line[256];
  int length = std::snprintf(line, sizeof line, "%s %lld %d%s\n", word, now(), getpid(), rest);
  if (write(fd, line, static_cast<size_t>(length)) != length) _exit(71);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  int fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return 71;
  char whose[160];
  std::snprintf(whose, sizeof whose, " %s %s %s", variable("RLOCK_TOKEN"), variable("RLOCK_OWNER"),
                argv[3]);
  append(fd, "start", whose);
  for (long long until = now() + std::atoll(argv[2]) * 1'000'000; now() < until;) {
    usleep(5'000);
    append(fd, "beat", "");
  }
  append(fd, "stop", "");
  return 0;
}
