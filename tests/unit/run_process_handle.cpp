// The process that a background renewer watches.
#include <doctest/doctest.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "support/job.hpp"
#include "util/process.hpp"

using namespace rlock;
using By = util::ProcessHandle::By;

namespace {

// A child that sleeps until it is killed. Signals no other process than its child.
class Sleeper {
 public:
  Sleeper() { begin(fork()); }
  // With a pid of our choice; no child if the system refuses that.
  explicit Sleeper(pid_t wanted) {
    clone_args args{};
    args.exit_signal = SIGCHLD;
    args.set_tid = reinterpret_cast<uint64_t>(&wanted);
    args.set_tid_size = 1;
    begin(static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args)));
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { reap(); }

  bool lives() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  void kill() const {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  void reap() {
    kill();
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  void begin(pid_t pid) {
    if (pid == 0) {
      while (true) pause();
    }
    pid_ = pid;
  }
  pid_t pid_ = -1;
};

}  // namespace

TEST_CASE("a live process has not ended, and a killed process has, reaped or not") {
  for (By by : {By::pidfd, By::start_time}) {
    Sleeper sleeper;
    REQUIRE(sleeper.lives());
    auto handle = util::ProcessHandle::open(sleeper.pid(), by);
    REQUIRE(handle);
    CHECK_FALSE(handle->ended());
    sleeper.kill();
    CHECK(test::eventually([&] { return handle->ended(); }));
    sleeper.reap();
    CHECK(handle->ended());
  }
}

TEST_CASE("the end of a process can be polled for if the kernel has a descriptor for it") {
  Sleeper sleeper;
  REQUIRE(sleeper.lives());
  auto handle = util::ProcessHandle::open(sleeper.pid());
  REQUIRE(handle);
  CHECK(util::ProcessHandle::open(sleeper.pid(), By::start_time)->fd() == -1);
  pollfd fd{handle->fd(), POLLIN, 0};
  CHECK(poll(&fd, 1, 0) == 0);
  sleeper.reap();
  CHECK(poll(&fd, 1, 0) == 1);
}

TEST_CASE("a process that is gone, or a zombie, has no handle") {
  Sleeper sleeper;
  REQUIRE(sleeper.lives());
  const pid_t pid = sleeper.pid();
  sleeper.kill();
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  for (By by : {By::pidfd, By::start_time}) CHECK_FALSE(util::ProcessHandle::open(pid, by));
  sleeper.reap();
  for (By by : {By::pidfd, By::start_time}) {
    auto handle = util::ProcessHandle::open(pid, by);
    REQUIRE_FALSE(handle);
    CHECK(handle.error().kind == ErrorKind::usage);
  }
}

TEST_CASE("a reused pid does not pass for the process of the handle") {
  Sleeper first;
  REQUIRE(first.lives());
  const pid_t pid = first.pid();
  auto by_descriptor = util::ProcessHandle::open(pid);
  auto by_time = util::ProcessHandle::open(pid, By::start_time);
  REQUIRE(by_descriptor);
  REQUIRE(by_time);
  // Start times are counted in hundredths of a second.
  usleep(20'000);
  first.reap();
  Sleeper second(pid);
  if (!second.lives()) {
    MESSAGE("skipped: this system does not let us choose a pid");
    return;
  }
  CHECK(second.pid() == pid);
  CHECK(by_descriptor->ended());
  CHECK(by_time->ended());
}
