// Runs inside a run that holds the lock, and commands whose descendants are waited for.
#include <doctest/doctest.h>
#include <signal.h>

#include "run/reentry.hpp"
#include "run_support.hpp"
#include "util/random.hpp"

using namespace rlock::test;
using namespace std::chrono_literals;

TEST_CASE("a held lock is re-entered: one request, no acquisition, an entry of its own") {
  Scratch scratch;
  Job job(held({"outer=held", "trace=" + scratch.file("trace")}, shell("echo $ENTRY; exit 4")));
  CHECK(job.line().size() == 32);
  CHECK(job.status() == 4);
  std::string trace = read_file(scratch.file("trace"));
  CHECK(count_calls(trace, "acquire") == 0);
  CHECK(count_calls(trace, "renew") == 1);
  CHECK(count_calls(trace, "event-entered") == 1);
  CHECK(count_calls(trace, "release") == 1);
}

TEST_CASE("a lock that the outer run no longer holds is acquired like any other") {
  for (const char* how : {"deleted", "taken", "forced"}) {
    Scratch scratch;
    Job job(held({"outer=held", std::string("renew=") + how, "trace=" + scratch.file("trace")},
                 shell("echo $ENTRY")));
    CHECK(job.line() == "0");
    CHECK(job.status() == 0);
    CHECK(count_calls(read_file(scratch.file("trace")), "acquire") == 1);
  }
}

TEST_CASE("a renewal says what a put-back restores; a nested run knows it only of itself") {
  using namespace rlock;
  const auto owner = *lock::Owner::parse("0123456789abcdef0123456789abcdef");
  lock::AcquireCall claim{*lock::LockName::parse("job"), owner};
  claim.once = lock::Once{lock::OnceKind::key, "v17", {}, 3};
  claim.supersede = lock::Supersede{7};
  claim.history_rows = 5;
  const lock::RenewCall outer = run::renew_call(claim, {owner, {42}});
  CHECK(outer.once == claim.once);
  CHECK((outer.supersede && outer.supersede->number == 7u));
  CHECK(outer.history_rows == 5u);
  run::HeldLock inside{owner, {42}};
  util::SystemRandom random;
  inside.entry = lock::Entry::fresh(random);
  const lock::RenewCall nested = run::renew_call(claim, inside);
  CHECK((!nested.once && !nested.supersede && !nested.history_rows));
}

TEST_CASE("an outer run whose lease is missing is given time to restore it") {
  Scratch scratch;
  const std::string trace = scratch.file("trace");
  Job job(held({"outer=unseen", "patience=600", "renew=deleted", "trace=" + trace},
               shell("echo $ENTRY")));
  CHECK(job.line() == "0");
  CHECK(job.status() == 0);
  CHECK(count_calls(read_file(trace), "renew") > 2);
  const auto waited =
      last_call(read_file(trace), "acquire") - first_call(read_file(trace), "renew");
  CHECK(waited >= rlock::Millis(600));
}

TEST_CASE("nobody waits for an outer run whose lock another has, or which was broken") {
  for (const char* how : {"taken", "forced"}) {
    Scratch scratch;
    const std::string trace = scratch.file("trace");
    Job job(held({"outer=unseen", "patience=600000", std::string("renew=") + how, "trace=" + trace},
                 shell("echo $ENTRY")));
    CHECK(job.line() == "0");
    CHECK(job.status() == 0);
    CHECK(count_calls(read_file(trace), "renew") == 1);
  }
}

TEST_CASE("a signal ends the wait for an outer run") {
  Scratch scratch;
  const std::string trace = scratch.file("trace");
  Job job(held({"outer=unseen", "patience=600000", "renew=deleted", "trace=" + trace},
               shell("echo started")));
  CHECK(eventually([&] { return count_calls(read_file(trace), "renew") > 1; }));
  send_signal(job.pid(), SIGTERM);
  CHECK(job.status() == 128 + SIGTERM);
  CHECK(job.rest().empty());
  CHECK(count_calls(read_file(trace), "acquire") == 0);
}

TEST_CASE("an entry's lease is 30 s at most, whatever was asked for") {
  Job job(held({"outer=held", "ttl=900000", "watchdog=none", "kill_after=26500"},
               shell("trap 'exit 0' TERM; echo on; while :; do sleep 0.05; done")));
  CHECK(job.line() == "on");
  // TERM comes when half of the 30 s is over.
  CHECK(job.status(rlock::Millis(60'000)) == 76);
}

TEST_CASE("an entry without a reply is cancelled, and nothing runs") {
  Scratch scratch;
  Job job(held({"outer=held", "renew=silent", "trace=" + scratch.file("trace")},
               shell("echo started")));
  CHECK(job.status() == 71);
  CHECK(job.rest().empty());
  CHECK(count_calls(read_file(scratch.file("trace")), "release") == 1);
}

TEST_CASE("a signal while re-entering ends the run, which cancels its entry") {
  Scratch scratch;
  Job job(held({"outer=held", "renew=silent", "trace=" + scratch.file("trace")},
               shell("echo started")));
  CHECK(eventually([&] { return count_calls(read_file(scratch.file("trace")), "renew") > 0; }));
  send_signal(job.pid(), SIGTERM);
  CHECK(job.status() == 128 + SIGTERM);
  CHECK(job.rest().empty());
  CHECK(count_calls(read_file(scratch.file("trace")), "release") == 1);
}

TEST_CASE("an operator's break that ends a nested run by the outer one's signal is a lost lease") {
  Job inner(held({"outer=held", "release=forced"}, shell("kill -TERM $$")));
  CHECK(inner.status() == 76);
  Job outer(held({"release=forced"}, shell("kill -TERM $$")));
  CHECK(outer.status() == 128 + SIGTERM);
}

TEST_CASE("the end of an inner run does not end what runs beside it") {
  Scratch scratch;
  std::string inner = std::string(RUN_HOLD) + " outer=held max_run=100 -- sleep 60";
  Job outer(held({}, shell("setsid sleep 60 & " + inner + "; echo $?; kill -0 $! && echo beside")));
  CHECK(outer.line() == "124");
  CHECK(outer.line() == "beside");
}

TEST_CASE("the outer run's ending reaches everything inside") {
  std::string inner = std::string(RUN_HOLD) + " outer=held -- setsid sh -c 'echo on; sleep 60'";
  Job outer(held({"max_run=3000"}, shell("setsid " + inner + " & sleep 60")));
  CHECK(outer.line() == "on");
  CHECK(outer.status() == 124);
  CHECK(outer.rest().empty());
  CHECK(outer.at_end());
}

TEST_CASE("the lock is held until the last descendant is gone, and the code is the command's") {
  Scratch scratch;
  Job job(held({"until=descendants", "trace=" + scratch.file("trace")},
               shell("setsid sh -c '(sleep 0.3; echo last) &' & exit 7")));
  CHECK(job.line() == "last");
  CHECK(job.status() == 7);
  CHECK(last_call(read_file(scratch.file("trace")), "release") != rlock::TimePoint{});
}

TEST_CASE("many descendants that end at once are all waited for") {
  Job job(held({"until=descendants"},
               shell("for i in 1 2 3 4 5 6 7 8 9; do (for j in 1 2 3 4 5; do sleep 0.0$j & done) & "
                     "done; (sleep 0.4; echo last) & exit 2")));
  CHECK(job.line() == "last");
  CHECK(job.status() == 2);
}

TEST_CASE("what the command left behind is ended by the run limit, a lost lease and a signal") {
  const std::string family = "setsid sleep 60 & (sleep 61 &); echo on; exit 0";
  Job limited(held({"until=descendants", "max_run=200"}, shell(family)));
  CHECK(limited.status() == 124);
  Job lost(held({"until=descendants", "ttl=1000", "renew=silent"}, shell(family)));
  CHECK(lost.status() == 76);
  CHECK(lost.rest() == "on\n");
  CHECK(lost.at_end());
  Job signaled(held({"until=descendants"}, shell(family)));
  CHECK(signaled.line() == "on");
  usleep(100'000);  // until the command itself has certainly ended
  send_signal(signaled.pid(), SIGTERM);
  CHECK(signaled.status() == 0);
  CHECK(signaled.rest().empty());
}

TEST_CASE("the guard ends what the command left behind") {
  Job job(held({"until=descendants"}, shell("setsid sleep 60 & (sleep 61 &); echo on")));
  CHECK(job.line() == "on");
  send_signal(job.pid(), SIGKILL);
  CHECK(job.rest().empty());
  CHECK(job.at_end());
}
