// job FOLDER LOCK MILLISECONDS KIND CODE: the command of the chaos runs. It leaves evidence in
// FOLDER:
//
// LOCK.log: WORD NS PID OWNER TOKEN [MORE], each line one write, the time by CLOCK_BOOTTIME. Of a
// holder with a slot all files are the slot's: LOCK#SLOT.log and so on.
//   start, beat every 5 ms, at its own end stop CODE · overlap: somebody else has LOCK.flock
//   socket FD: one that is not ours · bump N: the counter · accepted, refused HIGHEST: the store
// LOCK.counter: read, sleep, write without a lock: updates are lost where two run at once.
// LOCK.store: the protected resource. It refuses a token below the highest it has seen.
//
// KIND: plain · stubborn: ignores TERM · and those with a descendant that beats, too, until the job
// ends: group, session: it leaves the group or the session · forking: in a session of its own it
// goes on forking, and only those children beat · cleared, daemon: in a session of its own and
// without an environment; daemon: its parent is gone as well · disguised: with the lock file of a
// local: server as its descriptor 3 · user: it becomes nobody.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace {

constexpr long kMilli = 1'000'000;
constexpr long kBeat = 5 * kMilli;
constexpr int kBeatsAWrite = 10;
constexpr long kForkEvery = 10 * kMilli;
constexpr long kForkedLife = 30 * kMilli;
constexpr int kAboveOthers = 10;
constexpr uid_t kNobody = 65'534;
// A descendant that everybody forgot ends by itself, but later than any checker could overlook.
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
  Job(const std::string& place, const std::string& owner, const std::string& token)
      : token_(std::atoll(token.c_str())),
        whose_(owner + " " + token),
        log_(open_or_end(place + ".log", O_WRONLY | O_APPEND)),
        counter_(open_or_end(place + ".counter", O_RDWR)),
        store_(place + ".store"),
        flock_(open_or_end(place + ".flock", O_RDWR)) {}

  void report(const char* word, const std::string& more = {}) const {
    std::string line = std::string(word) + " " + std::to_string(now()) + " " +
                       std::to_string(getpid()) + " " + whose_ + " " + more + "\n";
    if (write(log_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(kSystem);
  }

  // Its first deed, so that the log knows the earliest moment.
  void begin() const {
    report("start");
    if (flock(flock_, LOCK_EX | LOCK_NB) != 0) report("overlap");
    for (int fd = 0; fd < flock_ + 64; ++fd) {
      struct stat what {};
      if (fstat(fd, &what) == 0 && S_ISSOCK(what.st_mode)) report("socket", std::to_string(fd));
    }
  }

  // Beats beside its job, until that asks for the end on purpose, by a byte: its death is to be
  // survived.
  [[noreturn]] void beat_beside(int asked, bool forks) const {
    char word = 0;
    fcntl(asked, F_SETFL, O_NONBLOCK);
    for (long long end = now() + kForgotten; now() < end && read(asked, &word, 1) != 1;) {
      if (forks) {
        while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
        if (fork() == 0) beat_and_end();
        pause_for(kForkEvery);
      } else {
        report("beat");
        pause_for(kBeat);
      }
    }
    _exit(0);
  }

  // For a descendant that is executed: its arguments name what it has to hold.
  void pass_on() const { fcntl(flock_, F_SETFD, 0); }

  void beat_until(long long end) const {
    for (int beats = 0; now() < end; ++beats) {
      if (beats % kBeatsAWrite == 0) use_resources();
      pause_for(std::min<long>(kBeat, std::max<long>(end - now(), 0)));
      report("beat");
    }
  }

 private:
  [[noreturn]] void beat_and_end() const {
    for (long long end = now() + kForkedLife; now() < end; pause_for(kBeat)) report("beat");
    _exit(0);
  }

  void use_resources() const {
    long long seen = read_number(counter_);
    pause_for(kMilli);
    write_number(counter_, seen + 1);
    report("bump", std::to_string(seen + 1));

    int store = open_or_end(store_, O_RDWR);
    flock(store, LOCK_EX);
    long long highest = read_number(store);
    if (token_ >= highest) write_number(store, token_);
    report(token_ >= highest ? "accepted" : "refused", std::to_string(highest));
    close(store);
  }

  long long token_;
  std::string whose_;
  int log_;
  int counter_;
  std::string store_;
  int flock_;  // inherited by all descendants: it is held as long as any of them lives
};

// A descendant that its job ends, and whose end it can wait for, also when it has another parent by
// then.
class Descendant {
 public:
  Descendant(const Job& job, std::string_view kind, char** argv) {
    if (pipe(ask_) != 0 || pipe(lives_) != 0) _exit(kSystem);
    ask_[0] = fcntl(ask_[0], F_DUPFD, kAboveOthers);  // a job may have been started with 0-2 closed
    pid_t child = fork();
    if (child < 0) _exit(kSystem);
    if (child == 0) become(job, kind, argv);
    close(ask_[0]);
    close(lives_[1]);
    if (kind == "daemon") waitpid(child, nullptr, 0);
  }

  void end() const {
    char none = 0;
    if (write(ask_[1], "e", 1) != 1) _exit(kSystem);
    while (read(lives_[0], &none, 1) != 0) continue;
  }

 private:
  [[noreturn]] void become(const Job& job, std::string_view kind, char** argv) {
    close(ask_[1]);
    close(lives_[0]);
    if (kind == "group") {
      setpgid(0, 0);
    } else {
      setsid();
    }
    if (kind == "daemon" && fork() != 0) _exit(0);
    if (kind == "disguised") {
      int file = open_or_end(std::string(argv[1]) + "/rlock.lock", O_RDWR);
      if (dup2(file, 3) != 3) _exit(kSystem);
      execute(job, argv, environ);
    }
    char* none[] = {nullptr};
    if (kind == "cleared" || kind == "daemon") execute(job, argv, none);
    // Where that is refused it stays who it is.
    if (kind == "user" && setresgid(kNobody, kNobody, kNobody) == 0) {
      [[maybe_unused]] int refused = setresuid(kNobody, kNobody, kNobody);
    }
    job.beat_beside(ask_[0], kind == "forking");
  }

  [[noreturn]] void execute(const Job& job, char** argv, char** environment) {
    std::string asked = std::to_string(ask_[0]), owner = variable("RLOCK_OWNER"),
                token = variable("RLOCK_TOKEN");
    char beside[] = "beside";
    char* words[] = {argv[0],      beside,       argv[1],      argv[2],
                     owner.data(), token.data(), asked.data(), nullptr};
    job.pass_on();
    execve("/proc/self/exe", words, environment);
    _exit(kSystem);
  }

  int ask_[2]{};    // a byte: end
  int lives_[2]{};  // end of file: all have ended
};

// crowd COUNT: as many processes that only sleep, for the cost of a stack each; they end with this
// one.
int crowd(int count) {
  constexpr size_t kStack = 4096;
  auto* stacks =
      static_cast<char*>(mmap(nullptr, kStack * static_cast<size_t>(count), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (stacks == MAP_FAILED) return kSystem;
  auto sleep_for_ever = [](void*) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) pause();
    return 0;
  };
  for (int made = 1; made <= count; ++made) {
    char* top = stacks + kStack * static_cast<size_t>(made);
    if (clone(sleep_for_ever, top, CLONE_VM | SIGCHLD, nullptr) < 0) return kSystem;
  }
  std::puts("up");
  std::fflush(stdout);
  while (true) pause();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && argv[1] == std::string_view("crowd")) return crowd(std::atoi(argv[2]));
  if (argc == 7) {  // beside FOLDER LOCK OWNER TOKEN DESCRIPTOR
    Job(std::string(argv[2]) + "/" + argv[3], argv[4], argv[5])
        .beat_beside(std::atoi(argv[6]), false);
  }
  if (argc != 6) return 64;
  const std::string_view kind = argv[4];
  std::string lock = argv[2];
  if (const char* slot = std::getenv("RLOCK_SLOT")) lock.append("#").append(slot);
  argv[2] = lock.data();  // for descendants, which may know no environment
  Job job(std::string(argv[1]) + "/" + argv[2], variable("RLOCK_OWNER"), variable("RLOCK_TOKEN"));
  job.begin();
  long long end = now() + std::atoll(argv[3]) * kMilli;
  if (kind == "stubborn") signal(SIGTERM, SIG_IGN);
  std::optional<Descendant> descendant;
  if (kind != "plain" && kind != "stubborn") descendant.emplace(job, kind, argv);
  job.beat_until(end);
  if (descendant) descendant->end();
  job.report("stop", argv[5]);
  return std::atoi(argv[5]);
}
