// job FOLDER LOCK MILLISECONDS KIND CODE: the command of the chaos runs. It leaves evidence in
// FOLDER:
//
// LOCK.log: WORD NS PID OWNER TOKEN [MORE], each line one write, the time by CLOCK_BOOTTIME.
//   start, beat every 5 ms, at its own end stop CODE · overlap: somebody else has LOCK.flock
//   socket FD: one that is not ours · bump N: the counter · accepted, refused HIGHEST: the store
// LOCK.counter: read, sleep, write without a lock: updates are lost where two run at once.
// LOCK.store: the protected resource. It refuses a token below the highest it has seen.
//
// KIND: plain · stubborn: ignores TERM · group, session: its grandchild leaves the group or the
// session and beats, too, until it is told to end.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

constexpr long kMilli = 1'000'000;
constexpr long kBeat = 5 * kMilli;
constexpr int kBeatsAWrite = 10;
// A grandchild that everybody forgot ends by itself, but later than any checker could overlook.
constexpr long long kForgotten = 20'000LL * kMilli;
constexpr int kSystem = 71;

long long now() {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return ts.tv_sec * 1'000'000'000LL + ts.tv_nsec;
}

void pause_for(long nanoseconds) {
  timespec time{0, nanoseconds};
  nanosleep(&time, nullptr);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "0";
}

int open_or_end(const std::string& path, int flags) {
  int fd = open(path.c_str(), flags | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) _exit(kSystem);
  return fd;
}

// A decimal number as a file's whole content; 0 where there is none yet.
long long read_number(int fd) {
  char text[32]{};
  return pread(fd, text, sizeof text - 1, 0) > 0 ? std::atoll(text) : 0;
}

void write_number(int fd, long long number) {
  char text[32];
  int length = std::snprintf(text, sizeof text, "%020lld", number);
  if (pwrite(fd, text, static_cast<size_t>(length), 0) != length) _exit(kSystem);
}

class Job {
 public:
  explicit Job(const std::string& place)
      : token_(std::atoll(variable("RLOCK_TOKEN").c_str())),
        whose_(variable("RLOCK_OWNER") + " " + std::to_string(token_)),
        log_(open_or_end(place + ".log", O_WRONLY | O_APPEND)),
        counter_(open_or_end(place + ".counter", O_RDWR)),
        store_(place + ".store"),
        flock_(open_or_end(place + ".flock", O_RDWR)) {}

  void tell(const char* word, const std::string& more = {}) const {
    std::string line = std::string(word) + " " + std::to_string(now()) + " " +
                       std::to_string(getpid()) + " " + whose_ + " " + more + "\n";
    if (write(log_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(kSystem);
  }

  // Its first deed, so that the log knows the earliest moment.
  void begin() const {
    tell("start");
    if (flock(flock_, LOCK_EX | LOCK_NB) != 0) tell("overlap");
    for (int fd = 0; fd < flock_ + 64; ++fd) {
      struct stat what {};
      if (fstat(fd, &what) == 0 && S_ISSOCK(what.st_mode)) tell("socket", std::to_string(fd));
    }
  }

  void beat_until(long long end) const {
    for (int beats = 0; now() < end; ++beats) {
      if (beats % kBeatsAWrite == 0) use_resources();
      pause_for(std::min<long>(kBeat, std::max<long>(end - now(), 0)));
      tell("beat");
    }
  }

 private:
  void use_resources() const {
    long long seen = read_number(counter_);
    pause_for(kMilli);
    write_number(counter_, seen + 1);
    tell("bump", std::to_string(seen + 1));

    int store = open_or_end(store_, O_RDWR);
    flock(store, LOCK_EX);
    long long highest = read_number(store);
    if (token_ >= highest) write_number(store, token_);
    tell(token_ >= highest ? "accepted" : "refused", std::to_string(highest));
    close(store);
  }

  long long token_;
  std::string whose_;
  int log_;
  int counter_;
  std::string store_;
  int flock_;  // inherited by the grandchild: it holds it as long as either lives
};

// Beats beside its parent, until that closes the pipe's other end on purpose: by a byte, since its
// death is to be survived.
[[noreturn]] void grandchild(const Job& job, std::string_view kind, int told) {
  if (kind == "session") {
    setsid();
  } else {
    setpgid(0, 0);
  }
  fcntl(told, F_SETFL, O_NONBLOCK);
  char word = 0;
  for (long long end = now() + kForgotten; now() < end && read(told, &word, 1) != 1;) {
    job.tell("beat");
    pause_for(kBeat);
  }
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 64;
  const std::string_view kind = argv[4];
  Job job(std::string(argv[1]) + "/" + argv[2]);
  job.begin();
  long long end = now() + std::atoll(argv[3]) * kMilli;
  if (kind == "stubborn") signal(SIGTERM, SIG_IGN);
  int line[2];
  pid_t child = -1;
  if (kind == "group" || kind == "session") {
    if (pipe(line) != 0) return kSystem;
    child = fork();
    if (child == 0) grandchild(job, kind, line[0]);
    if (child < 0) return kSystem;
  }
  job.beat_until(end);
  if (child > 0) {
    if (write(line[1], "e", 1) != 1) return kSystem;
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  job.tell("stop", argv[5]);
  return std::atoi(argv[5]);
}
