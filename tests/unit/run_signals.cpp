// Signals to rlock: while it waits, and while the command runs.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "run_support.hpp"

using namespace rlock::test;

TEST_CASE("TERM, INT and HUP while waiting: out of the queue, dead by that signal, nothing ran") {
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) {
    Scratch scratch;
    std::string trace = scratch.file("trace");
    Job job(held({"queue=1", "trace=" + trace}, shell("echo started")));
    CHECK(eventually([&] { return count_calls(read_file(trace), "event-enqueued") == 1; }));
    send_signal(job.pid(), signal);
    CHECK(job.status() == 128 + signal);
    CHECK(job.rest().empty());
    CHECK(count_calls(read_file(trace), "cancel") == 1);
  }
}

TEST_CASE("CHLD, WINCH and CONT do not end the wait") {
  Scratch scratch;
  std::string trace = scratch.file("trace");
  Job job(held({"queue=1", "trace=" + trace}, shell("echo started")));
  CHECK(eventually([&] { return count_calls(read_file(trace), "event-enqueued") == 1; }));
  for (int signal : {SIGCHLD, SIGWINCH, SIGCONT}) send_signal(job.pid(), signal);
  CHECK(job.status(rlock::Millis(300)) == -1);
  send_signal(job.pid(), SIGTERM);
  CHECK(job.status() == 128 + SIGTERM);
}

TEST_CASE("a signal to rlock reaches the command, once") {
  int input[2];
  REQUIRE(pipe2(input, O_CLOEXEC) == 0);
  rlock::util::Fd read_end(input[0]);
  rlock::util::Fd write_end(input[1]);
  Job::How how;
  how.input = read_end.get();
  Job job(held({}, {RUN_PROBE, "signals"}), how);
  CHECK(job.line() == "ready");
  for (int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGALRM}) {
    send_signal(job.pid(), signal);
    CHECK(job.line() == std::to_string(signal));
  }
  write_end.reset();
  CHECK(job.rest().empty());
  CHECK(job.status() == 0);
}

TEST_CASE("a signal reaches the whole group of the command") {
  Job job(held({}, shell("trap 'wait; echo outer; exit 5' TERM; "
                         "(trap 'echo inner; exit' TERM; echo on; while :; do sleep 0.05; done) & "
                         "wait")));
  CHECK(job.line() == "on");
  send_signal(job.pid(), SIGTERM);
  CHECK(job.line() == "inner");
  CHECK(job.line() == "outer");
  CHECK(job.status() == 5);
}

TEST_CASE("the release comes only after the command is gone") {
  Scratch scratch;
  std::string trace = scratch.file("trace");
  Job job(
      held({"trace=" + trace},
           shell("trap 'echo hm; sleep 0.2; exit 3' TERM; echo on; while :; do sleep 0.05; done")));
  CHECK(job.line() == "on");
  send_signal(job.pid(), SIGTERM);
  CHECK(job.line() == "hm");
  CHECK(count_calls(read_file(trace), "release") == 0);
  CHECK(job.status() == 3);
  CHECK(count_calls(read_file(trace), "release") == 1);
}

TEST_CASE("a signal that the command sends to rlock is not echoed to it") {
  Job job(held({}, shell("trap 'echo got' USR1; kill -USR1 $PPID; sleep 0.2; echo end")));
  CHECK(job.rest() == "end\n");
  CHECK(job.status() == 0);
}

TEST_CASE("rlock itself survives what ends an unprepared program") {
  Job job(held({}, shell("trap '' ALRM XCPU PWR 40; echo on; sleep 0.3; exit 2")));
  CHECK(job.line() == "on");
  for (int signal : {SIGALRM, SIGXCPU, SIGPWR, 40, SIGPIPE}) send_signal(job.pid(), signal);
  CHECK(job.status() == 2);
}
