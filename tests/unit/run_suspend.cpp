// Waits that count the time in which the host is suspended. No test can suspend the host: what each
// thread waits for is read from the kernel.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "run/proc.hpp"
#include "run_support.hpp"

using namespace rlock::test;

namespace {

std::string proc_of(pid_t pid) {
  return "/proc/" + std::to_string(pid);
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  rlock::run::for_each_number_in((proc_of(pid) + "/task").c_str(),
                                 [&](int thread) { threads.push_back(thread); });
  return threads;
}

// poll(2) without a timeout of its own, which would stand still in a suspend.
bool polls_without_timeout(pid_t thread) {
  std::istringstream call(read_file(proc_of(thread) + "/syscall"));
  long number = -1;
  std::string fds, count, timeout;
  call >> number >> fds >> count >> timeout;
#ifdef SYS_poll
  if (number == SYS_poll) return timeout == "0xffffffff" || timeout == "0xffffffffffffffff";
#endif
  return number == SYS_ppoll && timeout == "0x0";
}

// Armed timers on the clock that counts through a suspend.
int boot_timers(pid_t pid) {
  int timers = 0;
  rlock::run::for_each_number_in((proc_of(pid) + "/fd").c_str(), [&](int fd) {
    const std::string info = read_file(proc_of(pid) + "/fdinfo/" + std::to_string(fd));
    const bool boot =
        info.find("clockid: " + std::to_string(CLOCK_BOOTTIME) + "\n") != std::string::npos;
    const bool armed = info.find("it_value: (0, 0)") == std::string::npos;
    timers += boot && armed ? 1 : 0;
  });
  return timers;
}

// Some kernels do not show what a process waits for.
bool readable_here() {
  return !read_file("/proc/self/syscall").empty();
}

}  // namespace

TEST_CASE("the renewal thread waits by the clock that counts through a suspend" *
          doctest::skip(kUnderThreadSanitizer)) {
  if (!readable_here()) return;
  Job job(held({}, shell("echo on; exec sleep 60")));
  REQUIRE(job.line() == "on");
  CHECK(eventually([&] {
    auto threads = threads_of(job.pid());
    return threads.size() == 2 && polls_without_timeout(threads.back());
  }));
  CHECK(boot_timers(job.pid()) >= 1);
  send_signal(job.pid(), SIGTERM);
  job.status();
}

TEST_CASE("a waiter waits by the clock that counts through a suspend") {
  if (!readable_here()) return;
  Scratch scratch;
  Job job(held({"queue=1", "trace=" + scratch.file("trace")}, shell("true")));
  CHECK(eventually([&] { return polls_without_timeout(job.pid()); }));
  CHECK(boot_timers(job.pid()) == 1);
  send_signal(job.pid(), SIGTERM);
  job.status();
}
