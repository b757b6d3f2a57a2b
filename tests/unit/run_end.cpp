// How a command's end becomes rlock's.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>

#include "run_support.hpp"

using namespace rlock::test;

TEST_CASE("every exit code passes exactly") {
  for (int code = 0; code < 256; ++code) {
    Job job(held({}, shell("exit " + std::to_string(code))));
    CHECK(job.status() == code);
  }
}

TEST_CASE("rlock dies by the signal that ended the command, without a core of its own") {
  for (int signal : {SIGHUP, SIGINT, SIGTERM, SIGKILL, SIGUSR1, SIGSEGV, SIGABRT, SIGPIPE}) {
    Job job(held({}, shell("kill -" + std::to_string(signal) + " $$")));
    CHECK(job.status() == 128 + signal);
    CHECK(WIFSIGNALED(job.raw_status()));
    CHECK_FALSE(WCOREDUMP(job.raw_status()));
  }
}

TEST_CASE(
    "a command that is not there is 127, one that may not run 126, and the lock is released") {
  Scratch scratch;
  std::string plain = scratch.file("plain");
  std::ofstream(plain) << "text";
  for (auto [command, code] : {std::pair{std::string("no-such-command-here"), 127},
                               {scratch.file("missing"), 127},
                               {plain, 126}}) {
    Job job(held({"trace=" + scratch.file("trace")}, {command}));
    CHECK(job.status() == code);
  }
  CHECK(count_calls(read_file(scratch.file("trace")), "release") == 3);
}

TEST_CASE("a script without a first line runs in sh, as execvp does it") {
  Scratch scratch;
  std::string script = scratch.file("script");
  std::ofstream(script) << "echo $1; exit 5\n";
  chmod(script.c_str(), 0700);
  Job job(held({}, {script, "word"}));
  CHECK(job.line() == "word");
  CHECK(job.status() == 5);
}

TEST_CASE("the command sees its name, owner and token, once each") {
  setenv("RLOCK_TOKEN", "7", 1);
  Job job(held(
      {}, shell("env | grep -c ^RLOCK_TOKEN=; echo $RLOCK_NAME $RLOCK_TOKEN ${#RLOCK_OWNER}")));
  unsetenv("RLOCK_TOKEN");
  CHECK(job.line() == "1");
  CHECK(job.line() == "test 42 32");
  CHECK(job.status() == 0);
}

TEST_CASE("a run limit ends the command and what it started, with 124; waiting does not count") {
  Job job(held({"max_run=200", "grant_after=400"}, shell("setsid sleep 60 & echo on; sleep 60")));
  CHECK(job.line() == "on");
  CHECK(job.status() == 124);
  CHECK(job.rest().empty());
  CHECK(job.at_end());
}

TEST_CASE("a command that ignores TERM is killed when the run limit's grace is over") {
  Job job(held({"max_run=100", "kill_after=100"},
               shell("trap '' TERM; echo on; while :; do sleep 1; done")));
  CHECK(job.line() == "on");
  CHECK(job.status() == 124);
}

TEST_CASE("what ignores TERM does not outlive a command that rlock ended by it") {
  for (const char* why : {"max_run=200", "good_renewals=0"}) {
    Job job(held({why, "renew=forced", "ttl=3000", "kill_after=900"},
                 shell("(trap '' TERM; exec sleep 60) & echo on; exec sleep 61")));
    CHECK(job.line() == "on");
    const int status = job.status();
    CHECK((status == 124 || status == 76));
    CHECK(job.rest().empty());
    CHECK(job.at_end());
  }
}

TEST_CASE("what a command leaves behind lives on when it ended by itself") {
  Job job(held({}, shell("sleep 60 >/dev/null & echo $!")));
  pid_t left = std::stoi(job.line());
  CHECK(job.status() == 0);
  CHECK(alive(left));
  send_signal(left, SIGKILL);
}

TEST_CASE("the release is retried, and a silent server does not hold us for ever") {
  Scratch scratch;
  Job job(held({"release=error-once", "trace=" + scratch.file("trace")}, {"/bin/true"}));
  CHECK(job.status() == 0);
  CHECK(count_calls(read_file(scratch.file("trace")), "release") == 2);
  Job silent(
      held({"release=silent", "ttl=1000", "result=" + scratch.file("result")}, {"/bin/true"}));
  CHECK(silent.status() == 0);
  CHECK(read_file(scratch.file("result")) == "ended unreleased (fake:6379: no answer in time)\n");
  Job refused(held({"release=error-silent", "ttl=1000", "result=" + scratch.file("result")},
                   {"/bin/true"}));
  CHECK(refused.status() == 0);
  CHECK(read_file(scratch.file("result")).find("connection refused") != std::string::npos);
  Job missing(held({"release=silent", "ttl=1000", "result=" + scratch.file("result")},
                   {"no-such-command-here"}));
  CHECK(missing.status() == 127);
  CHECK(read_file(scratch.file("result")).ends_with("cannot exec unreleased\n"));
}
