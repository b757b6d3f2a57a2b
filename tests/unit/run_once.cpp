// Which ends of a run are a success that is recorded.
#include <doctest/doctest.h>
#include <signal.h>

#include <tuple>

#include "run_support.hpp"

using namespace rlock;
using namespace rlock::test;

namespace {

// A run that is done once; its trace and its result are in files of the folder.
struct Once {
  Scratch scratch;
  std::vector<std::string> settings{"once=1", "trace=" + scratch.file("trace"),
                                    "result=" + scratch.file("result")};

  std::vector<std::string> words(const std::vector<std::string>& more,
                                 const std::vector<std::string>& command) const {
    std::vector<std::string> all = settings;
    all.insert(all.end(), more.begin(), more.end());
    return held(all, command);
  }
  size_t reported(const char* what) const {
    return count_calls(read_file(scratch.file("trace")), what);
  }
  std::string result() const { return read_file(scratch.file("result")); }
};

}  // namespace

TEST_CASE("a command that exits with 0 by itself is a success, another one is not") {
  for (auto [text, successes, result] : {std::tuple{"exit 0", 1, "ended recorded\n"},
                                         {"exit 3", 0, "ended\n"},
                                         {"kill -KILL $$", 0, "ended\n"}}) {
    CAPTURE(text);
    Once once;
    Job job(once.words({}, shell(text)));
    job.status();
    CHECK(once.reported("success") == static_cast<size_t>(successes));
    CHECK(once.reported("failure") == static_cast<size_t>(1 - successes));
    CHECK(once.result() == result);
  }
}

TEST_CASE("a command that was asked to stop may exit with 0 half-way: no success") {
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    CAPTURE(signal);
    Once once;
    Job job(once.words(
        {}, shell("trap 'exit 0' TERM INT HUP QUIT; echo on; while :; do sleep 0.05; done")));
    CHECK(job.line() == "on");
    send_signal(job.pid(), signal);
    CHECK(job.status() == 0);
    CHECK(once.reported("success") == 0);
    CHECK(once.result() == "ended stopped\n");
  }
}

TEST_CASE("a signal that asks for nothing does not spoil a success") {
  Once once;
  Job job(once.words({}, shell("trap 'exit 0' USR1; echo on; while :; do sleep 0.05; done")));
  CHECK(job.line() == "on");
  send_signal(job.pid(), SIGUSR1);
  CHECK(job.status() == 0);
  CHECK(once.reported("success") == 1);
}

TEST_CASE("neither --max-run nor a broken lock leaves a success") {
  Once limited;
  Job job(limited.words({"max_run=200", "kill_after=5000"},
                        shell("trap 'exit 0' TERM; echo on; while :; do sleep 0.05; done")));
  CHECK(job.status() == 124);
  CHECK(limited.reported("success") == 0);
  for (const char* how : {"forced", "deleted"}) {
    CAPTURE(how);
    Once broken;
    Job ignored(broken.words({"ttl=900", "on_lost=ignore", std::string("renew=") + how},
                             {"/bin/sleep", "1"}));
    CHECK(ignored.status() == 0);
    // Of a lease whose keys are gone the server decides, by the token.
    CHECK(broken.reported("success") == (std::string(how) == "forced" ? 0U : 1U));
  }
}

TEST_CASE("what never started has neither succeeded nor failed") {
  Once once;
  Job job(once.words({}, {"no-such-command-here"}));
  CHECK(job.status() == 127);
  CHECK(once.reported("release") == 1);
  CHECK(once.reported("success") + once.reported("failure") == 0);
}

TEST_CASE("a nested run reports no success: the outer run does") {
  Once once;
  Job job(once.words({"outer=held"}, {"/bin/true"}));
  CHECK(job.status() == 71);
  CHECK(once.result().find("inside a run that holds the lock") != std::string::npos);
  CHECK(once.reported("release") == 1);  // of the entry
  CHECK(once.reported("acquire") == 0);
}

TEST_CASE("a success is reported until the lease ends, another release for five seconds at most") {
  Once once;
  const TimePoint start = BootClock::now();
  Job job(once.words({"release=silent", "ttl=7000"}, {"/bin/true"}));
  CHECK(job.status() == 0);
  CHECK(BootClock::now() - start > std::chrono::milliseconds(5'500));
  CHECK(once.result() == "ended unreleased (fake:6379: no answer in time) unconfirmed\n");
}

TEST_CASE("it is known whether the server had to forget another key") {
  Once once;
  Job job(once.words({"release=no-room"}, {"/bin/true"}));
  CHECK(job.status() == 0);
  CHECK(once.result() == "ended pushed out\n");
}
