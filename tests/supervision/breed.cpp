// breed FILE KIND [COUNT]: a tree of processes that is hard to end. Each of them writes the time
// (ns since 1970) into FILE again and again, and each birth is counted there: see Life.
//   beat        one process
//   forker      a session of its own, which makes a child of 30 ms every 10 ms
//   storm N     N processes that each become another one every millisecond
//   bomb        each makes two more; some hundreds at once
//   threads     four threads that make children of 20 ms; their leader has ended
//   vfork       one that is inside vfork(2) nearly always
//   deep N      a chain of N processes
//   copies N    the same, but only the last one beats, and the others sleep
//   daemons     each forks twice into a session of its own, every 10 ms, and beats for 100 ms
//   sessions N  N that ignore TERM, each in a session of its own, and beat once in a second
//   root        beats as root for real, where the program is setuid root: nobody else may signal it
//   sudo        the same, but it only sleeps, and a child that is nobody's beats
//   many N      N processes that only sleep, and end with this one; says `on` when they are there
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Counters {
  std::atomic<int64_t> last;
  std::atomic<int64_t> births;
  std::atomic<int64_t> living;  // of a bomb
};
Counters* counters;

void beat() {
  timespec ts{};
  clock_gettime(CLOCK_REALTIME, &ts);
  int64_t now = ts.tv_sec * int64_t{1'000'000'000} + ts.tv_nsec;
  for (int64_t last = counters->last;
       last < now && !counters->last.compare_exchange_weak(last, now);)
    continue;
}

void beat_for(int ms) {
  for (; ms > 0; --ms) {
    beat();
    usleep(1'000);
  }
  beat();
}

[[noreturn]] void beat_on() {
  while (true) beat_for(1'000);
}

pid_t fork_counted() {
  pid_t pid = fork();
  if (pid == 0) {
    ++counters->births;
    beat();
  }
  return pid;
}

[[noreturn]] void forker() {
  setsid();
  while (true) {
    if (fork_counted() == 0) {
      beat_for(30);
      _exit(0);
    }
    beat_for(10);
  }
}

[[noreturn]] void storm(int count) {
  for (int i = 1; i < count && fork_counted() != 0; ++i) continue;
  while (true) {
    usleep(1'000);
    beat();
    if (fork_counted() > 0) _exit(0);
  }
}

[[noreturn]] void bomb() {
  constexpr int kMost = 300;
  ++counters->living;
  while (true) {
    for (int i = 0; i < 2 && counters->living < kMost; ++i) {
      if (fork_counted() == 0) ++counters->living;
    }
    beat_for(3);
    if (counters->living < kMost / 2) continue;
    --counters->living;
    _exit(0);
  }
}

[[noreturn]] void* fork_on(void*) {
  while (true) {
    if (fork_counted() == 0) {
      beat_for(20);
      _exit(0);
    }
    beat_for(2);
  }
}

[[noreturn]] void threads() {
  pthread_t thread;
  for (int i = 0; i < 4; ++i) pthread_create(&thread, nullptr, fork_on, nullptr);
  pthread_exit(nullptr);
}

[[noreturn]] void vfork_on() {
  while (true) {
    if (vfork() == 0) {
      ++counters->births;
      beat_for(200);
      _exit(0);
    }
  }
}

[[noreturn]] void deep(int count) {
  for (int i = 1; i < count && fork_counted() == 0; ++i) continue;
  beat_on();
}

[[noreturn]] void copies(int count) {
  for (int i = 1; i < count; ++i) {
    if (fork_counted() == 0) continue;
    while (true) pause();
  }
  beat_on();
}

[[noreturn]] void daemons() {
  while (true) {
    if (fork_counted() == 0) {
      setsid();
      if (fork_counted() == 0) beat_for(100);
      _exit(0);
    }
    beat_for(10);
  }
}

[[noreturn]] void sessions(int count) {
  signal(SIGTERM, SIG_IGN);
  for (int i = 0; i < count; ++i) {
    if (fork_counted() != 0) continue;
    setsid();
    while (true) {
      beat();
      usleep(999'999);
    }
  }
  beat_on();
}

[[noreturn]] void become_root() {
  if (setresuid(0, 0, 0) != 0) _exit(77);
  beat_on();
}

[[noreturn]] void sudo() {
  constexpr uid_t kNobody = 65534;
  if (setresuid(0, 0, 0) != 0) _exit(77);
  if (fork() == 0) {
    setsid();
    if (setresuid(kNobody, kNobody, kNobody) != 0) _exit(77);
    ++counters->births;
    beat_on();
  }
  while (true) pause();
}

[[noreturn]] void many(int count) {
  pid_t parent = getpid();
  for (int i = 0; i < count; ++i) {
    pid_t pid = fork();
    if (pid < 0) _exit(71);
    if (pid > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    while (true) pause();
  }
  if (write(STDOUT_FILENO, "on\n", 3) != 3) _exit(71);
  while (true) pause();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const std::string kind = argv[2];
  const int count = argc > 3 ? std::atoi(argv[3]) : 0;
  int fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0 || ftruncate(fd, sizeof(Counters)) != 0) return 71;
  void* memory = mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 71;
  close(fd);
  counters = static_cast<Counters*>(memory);
  signal(SIGCHLD, SIG_IGN);  // its children leave no zombies
  if (kind == "many") many(count);
  ++counters->births;
  beat();
  if (kind == "beat") beat_on();
  if (kind == "forker") forker();
  if (kind == "storm") storm(count);
  if (kind == "bomb") bomb();
  if (kind == "threads") threads();
  if (kind == "vfork") vfork_on();
  if (kind == "deep") deep(count);
  if (kind == "copies") copies(count);
  if (kind == "daemons") daemons();
  if (kind == "sessions") sessions(count);
  if (kind == "root") become_root();
  if (kind == "sudo") sudo();
  return 64;
}
