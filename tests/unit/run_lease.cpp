// A lease that is lost, renewed late, or not to be renewed at all.
#include <doctest/doctest.h>
#include <signal.h>

#include "run_support.hpp"

using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

constexpr char kStubborn[] = "trap '' TERM; setsid sleep 60 & echo on; while :; do sleep 1; done";

}  // namespace

TEST_CASE("the lease is renewed for as long as the command runs, and not afterwards") {
  Scratch scratch;
  Job job(held({"ttl=1000", "trace=" + scratch.file("trace")}, shell("sleep 2; exit 8")));
  CHECK(job.status() == 8);
  std::string trace = read_file(scratch.file("trace"));
  CHECK(count_calls(trace, "event-renewed") >= 3);
  CHECK(trace.find(" renew\n", trace.find(" release\n")) == std::string::npos);
}

TEST_CASE("a grant that some servers have not confirmed is renewed at once, another is not") {
  Scratch scratch;
  const std::string trace = scratch.file("trace");
  Job partial(held({"ttl=600000", "partial=1", "trace=" + trace},
                   shell("until grep -q ' event-renewed$' " + trace + "; do sleep 0.05; done")));
  CHECK(partial.status() == 0);
  Job complete(held({"ttl=600000", "trace=" + scratch.file("complete")}, shell("sleep 0.5")));
  CHECK(complete.status() == 0);
  CHECK(count_calls(read_file(scratch.file("complete")), "renew") == 0);
}

TEST_CASE("a short command does not open the renewal's connection") {
  Scratch scratch;
  Job job(held({"trace=" + scratch.file("trace")}, {"/bin/true"}));
  CHECK(job.status() == 0);
  std::string trace = read_file(scratch.file("trace"));
  CHECK(count_calls(trace, "renew") == 0);
  CHECK(count_calls(trace, "listen") == 0);
}

TEST_CASE("a silent server: the command that ignores TERM is dead before the lease ends") {
  Scratch scratch;
  Job job(held({"ttl=1500", "renew=silent", "trace=" + scratch.file("trace"),
                "result=" + scratch.file("result")},
               shell(kStubborn)));
  CHECK(job.line() == "on");
  CHECK(job.rest().empty());
  REQUIRE(job.at_end());
  CHECK(job.ended_at() < last_call(read_file(scratch.file("trace")), "acquire") + 1500ms);
  CHECK(job.status() == 76);
  std::string trace = read_file(scratch.file("trace"));
  CHECK(count_calls(trace, "renew") > 1);
  CHECK(count_calls(trace, "event-killed") == 1);
  CHECK(read_file(scratch.file("result")) == "lost last_error\n");
}

TEST_CASE("a lease that is half over when the command starts is renewed at once") {
  // TERM comes at 500 ms, before the renewal thread of an ordinary run. A starved machine may miss
  // even that.
  Job job(held({"ttl=1000", "kill_after=500", "grant_after=460"}, shell("sleep 0.3; exit 4")));
  int status = job.status();
  CHECK((status == 4 || status == 76));
}

TEST_CASE("one failed renewal does not drop the lock") {
  Job job(held({"ttl=3000", "renew=error"}, shell("echo on; sleep 1.2; exit 3")));
  CHECK(job.status() == 3);
}

TEST_CASE("a broken connection hastens the renewal: the server may have lost the lease") {
  Scratch scratch;
  // The usual renewal is due after 20 s.
  Job job(held({"ttl=60000", "wake=broken", "trace=" + scratch.file("trace")}, shell("sleep 2")));
  CHECK(job.status() == 0);
  CHECK(count_calls(read_file(scratch.file("trace")), "renew") == 1);
}

TEST_CASE("a command that handles TERM may clean up within its lease") {
  Job job(held({"ttl=1500", "renew=error", "kill_after=400"},
               shell("trap 'echo tidy; exit 0' TERM; echo on; while :; do sleep 0.05; done")));
  CHECK(job.line() == "on");
  CHECK(job.line() == "tidy");
  CHECK(job.status() == 76);
}

TEST_CASE("when another owner has the lock the command is killed at once, without a grace period") {
  for (const char* how : {"taken", "full"}) {
    Scratch scratch;
    Job job(held({"ttl=1000", std::string("renew=") + how, "kill_after=60000",
                  "trace=" + scratch.file("trace")},
                 shell("trap 'echo tidy' TERM; echo on; while :; do sleep 0.05; done")));
    CHECK(job.line() == "on");
    CHECK(job.rest().empty());
    CHECK(job.status() == 76);
    CHECK(count_calls(read_file(scratch.file("trace")), "event-terminating") == 0);
  }
}

TEST_CASE("when an operator breaks the lock: TERM, time to clean up, then the release confirms") {
  Scratch scratch;
  Job job(held(
      {"ttl=30000", "renew=forced", "woken_after=50", "kill_after=5000",
       "trace=" + scratch.file("trace"), "result=" + scratch.file("result")},
      shell("trap 'sleep 0.1; echo tidy; exit 0' TERM; echo on; while :; do sleep 0.05; done")));
  CHECK(job.line() == "on");
  CHECK(job.line() == "tidy");
  CHECK(job.status() == 76);
  CHECK(read_file(scratch.file("result")) == "lost reported=5\n");
  std::string trace = read_file(scratch.file("trace"));
  CHECK(count_calls(trace, "release") == 1);
  CHECK(last_call(trace, "release") > last_call(trace, "event-terminating"));
}

TEST_CASE("with --on-lost ignore the command keeps running and its code, with a warning") {
  Scratch scratch;
  for (const char* how : {"deleted", "taken", "silent"}) {
    Job job(held({"ttl=1000", std::string("renew=") + how, "on_lost=ignore",
                  "trace=" + scratch.file("trace"), "result=" + scratch.file("result")},
                 shell("sleep 1.6; exit 7")));
    CHECK(job.status() == 7);
    CHECK(read_file(scratch.file("result")).find("ended lost") != std::string::npos);
  }
  CHECK(count_calls(read_file(scratch.file("trace")), "event-lost") == 3);
}

TEST_CASE("without renewal the command is ended inside its first lease") {
  Scratch scratch;
  Job job(held({"ttl=1000", "watchdog=none", "trace=" + scratch.file("trace")}, shell(kStubborn)));
  CHECK(job.line() == "on");
  CHECK(job.rest().empty());
  std::string trace = read_file(scratch.file("trace"));
  CHECK(job.ended_at() < last_call(trace, "acquire") + 1000ms);
  CHECK(job.status() == 76);
  CHECK(count_calls(trace, "renew") == 0);
}

TEST_CASE("a waiter that slept renews before the command starts") {
  Scratch scratch;
  Job job(held({"ttl=2500", "grant_after=1500", "trace=" + scratch.file("trace")}, {"/bin/true"}));
  CHECK(job.status() == 0);
  CHECK(count_calls(read_file(scratch.file("trace")), "renew") == 1);
}

TEST_CASE("a waiter that slept past its lease never starts the command") {
  for (const char* how : {"taken", "error", "silent"}) {
    Scratch scratch;
    Job job(held({"ttl=1000", "grant_after=600", std::string("renew=") + how,
                  "result=" + scratch.file("result")},
                 shell("echo started")));
    CHECK(job.status() == 76);
    CHECK(job.rest().empty());
    CHECK(read_file(scratch.file("result")).find("never_started") != std::string::npos);
  }
}

TEST_CASE("a lock broken by an operator is reported even if only the release learns of it") {
  Scratch scratch;
  Job job(held({"release=forced", "result=" + scratch.file("result")}, {"/bin/true"}));
  CHECK(job.status() == 0);
  CHECK(read_file(scratch.file("result")) == "ended lost reported=5\n");
}
