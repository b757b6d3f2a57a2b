// Takes the place of rlock: runs the program FIRST or SECOND. Which of them follows from
// EITHER_SEED and from how many calls there were before: the file EITHER_CALLS has a 1 or a 2 for
// each.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

// splitmix64.
uint64_t mixed(uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

}  // namespace

int main(int, char** argv) {
  const char* seed = std::getenv("EITHER_SEED");
  const char* calls = std::getenv("EITHER_CALLS");
  const char* const programs[] = {std::getenv("FIRST"), std::getenv("SECOND")};
  const int fd = calls == nullptr ? -1 : open(calls, O_RDWR | O_APPEND | O_CLOEXEC);
  struct stat file {};
  if (seed == nullptr || programs[0] == nullptr || programs[1] == nullptr || fd < 0 ||
      fstat(fd, &file) != 0) {
    std::fprintf(stderr, "either: needs FIRST, SECOND, EITHER_SEED and the file EITHER_CALLS\n");
    return 70;
  }
  // Two that come at once may count the same: then both run the same program.
  const uint64_t which =
      mixed(std::strtoull(seed, nullptr, 10) ^ mixed(static_cast<uint64_t>(file.st_size))) & 1;
  if (write(fd, which == 0 ? "1" : "2", 1) != 1) return 70;
  execv(programs[which], argv);
  std::perror(programs[which]);
  return 70;
}
