// Faults of rlock and of its guard. [docs/FAULTS.md, "Faults"]
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include "run/proc.hpp"

#include "run_support.hpp"

using namespace rlock::test;
using namespace std::chrono_literals;

namespace rlock::test {

pid_t guard_of(pid_t parent) {
  pid_t guard = -1;
  run::for_each_number_in("/proc", [&](pid_t pid) {
    auto stat = run::read_stat(pid);
    if (stat && stat->alive() && stat->parent == parent && run::read_name(pid) == "lease-guard") {
      guard = pid;
    }
  });
  return guard;
}

bool closed_stdout(pid_t rlock) {
  std::string link = "/proc/" + std::to_string(rlock) + "/fd/1";
  return eventually([&] {
    char target[64] = {};
    return readlink(link.c_str(), target, sizeof target - 1) > 0 &&
           std::string(target) == "/dev/null";
  });
}

}  // namespace rlock::test

namespace {

// A command whose children leave its process group and session.
constexpr char kFamily[] =
    "setsid sleep 60 & timeout 61 sleep 62 & (setsid sh -c 'sleep 63 & sleep 64' &) ; echo on; "
    "sleep 65";

pid_t await_guard(pid_t parent) {
  pid_t guard = -1;
  eventually([&] { return (guard = guard_of(parent)) > 0; });
  return guard;
}

}  // namespace

TEST_CASE("when rlock is killed the guard ends the command and what left its group") {
  Job job(held({}, shell(kFamily)));
  CHECK(job.line() == "on");
  send_signal(job.pid(), SIGKILL);
  CHECK(job.rest().empty());
  CHECK(job.at_end());
}

TEST_CASE("the guard matches neither the name nor the command line of rlock") {
  Job job(held({}, shell("echo on; read line; sleep 60")));
  CHECK(job.line() == "on");
  pid_t guard = await_guard(job.pid());
  REQUIRE(guard > 0);
  std::string folder = "/proc/" + std::to_string(guard);
  CHECK(eventually([&] { return read_file(folder + "/cmdline").starts_with("lease-guard"); }));
  CHECK(read_file(folder + "/cmdline").find("run_hold") == std::string::npos);
}

TEST_CASE("the guard holds none of the caller's descriptors") {
  Job job(held({}, shell("echo on; exec >/dev/null; sleep 60")));
  CHECK(job.line() == "on");
  CHECK(job.rest().empty());
  CHECK(job.at_end());
}

TEST_CASE("a stopped rlock does not keep the command alive past its lease") {
  Scratch scratch;
  Job job(held({"ttl=1000", "trace=" + scratch.file("trace"), "result=" + scratch.file("result")},
               shell(kFamily)));
  CHECK(job.line() == "on");
  CHECK(closed_stdout(job.pid()));
  send_signal(job.pid(), SIGSTOP);
  CHECK(job.rest().empty());
  REQUIRE(job.at_end());
  std::string trace = read_file(scratch.file("trace"));
  CHECK(job.ended_at() < std::max(last_call(trace, "acquire"), last_call(trace, "renew")) + 1000ms);
  send_signal(job.pid(), SIGCONT);
  CHECK(job.status() == 76);
  CHECK(read_file(scratch.file("result")).find("by_guard") != std::string::npos);
}

TEST_CASE("a command that ended by itself while rlock was stopped keeps its code") {
  Scratch scratch;
  std::string trace = scratch.file("trace");
  // Processes that it leaves behind go on, as after any normal end.
  Job job(held({"ttl=1000", "trace=" + trace},
               shell("setsid sleep 60 >/dev/null & echo $!; sleep 0.2; exit 6")));
  pid_t left = std::stoi(job.line());
  CHECK(closed_stdout(job.pid()));
  send_signal(job.pid(), SIGSTOP);
  CHECK(job.rest().empty());
  CHECK(job.at_end());
  // After the lease, and after the moment at which the guard of a living command would kill.
  CHECK(eventually(
      [&] { return rlock::BootClock::now() > last_call(read_file(trace), "acquire") + 1100ms; }));
  CHECK(alive(left));
  send_signal(left, SIGKILL);
  send_signal(job.pid(), SIGCONT);
  CHECK(job.status() == 6);
}

TEST_CASE("a stop that is shorter than the lease harms nobody") {
  Job job(held({"ttl=3000"}, shell("echo on; sleep 0.4; exit 6")));
  CHECK(job.line() == "on");
  CHECK(closed_stdout(job.pid()));
  send_signal(job.pid(), SIGSTOP);
  usleep(100'000);
  send_signal(job.pid(), SIGCONT);
  CHECK(job.status() == 6);
}

TEST_CASE("when the guard is killed rlock ends the command and what left its group, 71") {
  Scratch scratch;
  Job job(held({"result=" + scratch.file("result")}, shell(kFamily)));
  CHECK(job.line() == "on");
  send_signal(await_guard(job.pid()), SIGKILL);
  CHECK(job.rest().empty());
  CHECK(job.at_end());
  CHECK(job.status() == 71);
  CHECK(read_file(scratch.file("result")) == "unprotected the guard process was killed\n");
}

TEST_CASE("a guard killed beside the renewal thread: the lock is held until all is ended") {
  Scratch scratch;
  std::string trace = scratch.file("trace");
  std::string locked = scratch.file("locked");
  Job job(held({"ttl=6000", "trace=" + trace, "locked=" + locked},
               shell("exec 9>'" + locked + "'; flock 9; " + kFamily)));
  CHECK(job.line() == "on");
  CHECK(eventually([&] { return count_calls(read_file(trace), "event-renewed") > 0; }));
  send_signal(await_guard(job.pid()), SIGKILL);
  CHECK(job.rest().empty());
  REQUIRE(job.at_end());
  CHECK(job.status() == 71);
  CHECK(count_calls(read_file(trace), "release") == 1);
  CHECK(count_calls(read_file(trace), "early") == 0);
}

TEST_CASE("a guard that is stopped when rlock is killed goes on, and ends the command") {
  Job job(held({}, shell(kFamily)));
  CHECK(job.line() == "on");
  pid_t guard = await_guard(job.pid());
  REQUIRE(guard > 0);
  send_signal(job.pid(), SIGSTOP);  // else rlock would resume it
  send_signal(guard, SIGSTOP);
  send_signal(job.pid(), SIGKILL);
  CHECK(job.rest().empty());
  CHECK(job.at_end());
}

TEST_CASE("a stopped guard is resumed") {
  Job job(held({}, shell("echo on; sleep 60")));
  CHECK(job.line() == "on");
  pid_t guard = await_guard(job.pid());
  send_signal(guard, SIGSTOP);
  CHECK(eventually([&] {
    auto stat = rlock::run::read_stat(guard);
    return stat && stat->state != 'T';
  }));
  // The stop may land after that look; a guard that stays stopped would outlive the test.
  send_signal(guard, SIGCONT);
}

TEST_CASE("when rlock and guard are killed at once the direct child dies") {
  Job job(held({}, shell("echo on; exec sleep 60")));
  CHECK(job.line() == "on");
  pid_t guard = await_guard(job.pid());
  send_signal(job.pid(), SIGSTOP);
  send_signal(guard, SIGKILL);
  send_signal(job.pid(), SIGKILL);
  CHECK(job.rest().empty());
  CHECK(job.at_end());
}

TEST_CASE("a command that ends at any moment has one truth") {
  auto seed = static_cast<unsigned>(rlock::BootClock::now().time_since_epoch().count());
  MESSAGE("seed " << seed);
  srand(seed);
  for (int round = 0; round < 12; ++round) {
    // Around the moment at which a lease without renewal ends: TERM comes at 640 ms.
    double seconds = 0.60 + (rand() % 100) / 1000.0;
    Job job(held({"ttl=1000", "watchdog=none"},
                 shell("sleep " + std::to_string(seconds) + "; exit 9")));
    int status = job.status();
    CHECK((status == 9 || status == 76));
    CHECK(job.rest(1000ms).empty());
    CHECK(job.at_end());
  }
}
