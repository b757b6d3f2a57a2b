// Waits that count the time in which the host is suspended. No test can suspend the host: which
// clock a timer runs on is read from the kernel.
#include "util/boot_timer.hpp"

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

using namespace rlock;
using namespace rlock::util;
using namespace std::chrono_literals;

namespace {

std::string fdinfo(int fd) {
  std::ifstream file("/proc/self/fdinfo/" + std::to_string(fd));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool on_boot_clock(int fd) {
  return fdinfo(fd).find("clockid: " + std::to_string(CLOCK_BOOTTIME) + "\n") != std::string::npos;
}

bool fired(const BootTimer& timer, int timeout) {
  pollfd fd{timer.fd(), POLLIN, 0};
  return poll(&fd, 1, timeout) == 1;
}

int open_timers() {
  int timers = 0;
  for (int fd = 0; fd < 256; ++fd) {
    timers += fdinfo(fd).find("clockid:") != std::string::npos ? 1 : 0;
  }
  return timers;
}

}  // namespace

TEST_CASE("a timer runs on the clock that counts through a suspend, at an absolute time") {
  BootTimer timer;
  REQUIRE(timer.fd() >= 0);
  CHECK(on_boot_clock(timer.fd()));
  const TimePoint at = BootClock::now() + 30ms;
  timer.arm(at);
  CHECK(fired(timer, 60'000));
  CHECK(BootClock::now() >= at);
  CHECK(fired(timer, 0));  // until it is armed again
}

TEST_CASE("a timer may be set for the past, for later and for never") {
  BootTimer timer;
  CHECK_FALSE(fired(timer, 0));
  for (TimePoint past : {TimePoint::min(), TimePoint{}, BootClock::now() - 1s}) {
    timer.arm(past);
    CHECK(fired(timer, 60'000));
  }
  timer.arm(BootClock::now() + 1h);
  CHECK_FALSE(fired(timer, 0));
  timer.arm(BootClock::now());
  CHECK(fired(timer, 60'000));
  timer.arm(TimePoint::max());
  CHECK_FALSE(fired(timer, 0));
}

TEST_CASE("a poll ends at its time or with an event, and reports the caller's events alone") {
  Fd event(eventfd(0, EFD_CLOEXEC));
  pollfd fds[] = {{event.get(), POLLIN, 0}, {-1, POLLIN, 0}};
  TimePoint until = BootClock::now() + 20ms;
  CHECK(poll_until(fds, until) == 0);
  CHECK(BootClock::now() >= until);
  CHECK(fds[0].revents == 0);
  CHECK(poll_until(fds, TimePoint::min()) == 0);
  const uint64_t one = 1;
  REQUIRE(write(event.get(), &one, sizeof one) == sizeof one);
  for (TimePoint end : {TimePoint::max(), BootClock::now() + 1h, TimePoint::min()}) {
    fds[0].revents = 0;
    CHECK(poll_until(fds, end) == 1);
    CHECK(fds[0].revents == POLLIN);
    CHECK(fds[1].revents == 0);
  }
}

TEST_CASE("a thread has one timer, which its end closes; a forked process has its own") {
  poll_until({}, BootClock::now() + 1ms);
  const int before = open_timers();
  std::thread([&] {
    for (int i = 0; i < 3; ++i) poll_until({}, BootClock::now() + 1ms);
    CHECK(open_timers() == before + 1);
  }).join();
  CHECK(open_timers() == before);
  const TimePoint until = BootClock::now() + 50ms;
  const pid_t child = fork();
  if (child == 0) {
    poll_until({}, BootClock::now() + 1ms);
    _exit(open_timers() == before + 1 ? 0 : 1);
  }
  while (BootClock::now() < until) poll_until({}, until);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("without a descriptor for a timer a wait comes back at least once a second") {
  rlimit usual{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &usual) == 0);
  std::thread([&] {
    const Fd next(eventfd(0, EFD_CLOEXEC));
    const rlimit full{static_cast<rlim_t>(next.get()), usual.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &full) == 0);
    CHECK(poll_until({}, BootClock::now() + 1h) == 0);
    setrlimit(RLIMIT_NOFILE, &usual);
  }).join();
}
