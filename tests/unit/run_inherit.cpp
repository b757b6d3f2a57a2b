// What passes from the caller to the command, and what does not.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "run_support.hpp"

using namespace rlock::test;

namespace {

std::string sorted_words(std::string line) {
  std::sort(line.begin(), line.end());
  return line;
}

}  // namespace

TEST_CASE("none of our descriptors reaches the command, every one of the caller's does") {
  Job::How how;
  how.before_exec = [] {
    dup2(0, 9);
    dup2(0, 57);
  };
  Job bare({RUN_PROBE, "fds"}, how);
  Job job(held({}, {RUN_PROBE, "fds"}), how);
  CHECK(sorted_words(job.rest()) == sorted_words(bare.rest()));
  CHECK(job.status() == 0);
}

TEST_CASE("standard descriptors that the caller closed are closed for the command too") {
  Scratch scratch;
  Job::How how;
  how.before_exec = [] {
    close(0);
    close(2);
  };
  Job bare({RUN_PROBE, "fds"}, how);
  Job job(held({}, {RUN_PROBE, "fds"}), how);
  CHECK(sorted_words(job.rest()) == sorted_words(bare.rest()));
  CHECK(job.status() == 0);
  how.before_exec = [] {
    for (int fd : {0, 1, 2}) close(fd);
  };
  Job mute(held({"trace=" + scratch.file("trace")}, shell("exit 3")), how);
  CHECK(mute.status() == 3);
}

TEST_CASE("what the command closes is closed: the reader of its output, a lock on fd 9") {
  Scratch scratch;
  std::string path = scratch.file("flock");
  rlock::util::Fd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  Job::How how;
  how.before_exec = [&] {
    int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    flock(fd, LOCK_EX);
    dup2(fd, 9);
    close(fd);
  };
  Job job(held({}, shell("echo on; exec >/dev/null 9>&-; sleep 60")), how);
  CHECK(job.line() == "on");
  CHECK(job.rest().empty());
  CHECK(job.at_end());
  CHECK(eventually([&] { return flock(lock.get(), LOCK_EX | LOCK_NB) == 0; }));
  send_signal(job.pid(), SIGTERM);
  CHECK(job.status() == 128 + SIGTERM);
}

TEST_CASE("mask and dispositions are the caller's, whatever we need ourselves") {
  Job::How how;
  how.before_exec = [] {
    signal(SIGCHLD, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_DFL);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGRTMIN + 3);
    sigprocmask(SIG_SETMASK, &blocked, nullptr);
  };
  Job bare({RUN_PROBE, "status"}, how);
  Job job(held({}, {RUN_PROBE, "status"}), how);
  std::string expected = bare.rest();
  CHECK(expected.find("SigIgn") != std::string::npos);
  CHECK(job.rest() == expected);
  CHECK(job.status() == 0);
}

TEST_CASE("a signal that the caller ignores does not end the command, as under nohup") {
  Job::How how;
  how.before_exec = [] { signal(SIGHUP, SIG_IGN); };
  Job job(held({}, shell("echo on; read line; exit 4")), how);
  CHECK(job.line() == "on");
  send_signal(job.pid(), SIGHUP);
  CHECK(job.status() == 4);
}
