// Who belongs to a command.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "run/proc.hpp"
#include "run/tree.hpp"
#include "run_support.hpp"
#include "util/random.hpp"

using namespace rlock;
using namespace rlock::test;

namespace {

// Of this process alone: other runs of these tests may be under way beside it.
const std::string kOwner = [] {
  util::SystemRandom random;
  return util::random_hex(random);
}();

run::Quarry quarry(pid_t command) {
  run::Quarry quarry;
  std::copy_n(kOwner.begin(), quarry.mark.size(), quarry.mark.begin());
  quarry.runner = -1;
  quarry.session = getsid(0);
  quarry.command = command;
  quarry.born_from = run::born_now();
  return quarry;
}

}  // namespace

TEST_CASE("a stat line is read past a name with brackets and blanks") {
  prctl(PR_SET_NAME, "a) S 1 (b");
  auto stat = run::read_stat(getpid());
  prctl(PR_SET_NAME, "unit_run");
  REQUIRE(stat.has_value());
  CHECK(stat->parent == getppid());
  CHECK(stat->group == getpgrp());
  CHECK(stat->session == getsid(0));
  CHECK(stat->threads == 1);
  CHECK(stat->born <= run::born_now());
  CHECK_FALSE(stat->before_exec());
  CHECK_FALSE(run::read_stat(0x3ffffff).has_value());
}

TEST_CASE("a process is found by its owner in a long environment, and only then") {
  Job::How how;
  how.before_exec = [] {
    setenv("AAA_LONG", std::string(60'000, 'x').c_str(), 1);
    setenv("RLOCK_OWNER", kOwner.c_str(), 1);
  };
  Job with(shell("echo on; sleep 60"), how);
  Job without(shell("echo on; sleep 60"));
  CHECK(with.line() == "on");
  CHECK(without.line() == "on");
  CHECK(run::environ_contains(with.pid(), kOwner));
  CHECK_FALSE(run::environ_contains(without.pid(), kOwner));
}

TEST_CASE("the tree: children of children, those in other sessions, nobody else") {
  Job::How how;
  how.before_exec = [] { setenv("RLOCK_OWNER", kOwner.c_str(), 1); };
  auto born = run::born_now();
  Job stranger(shell("echo on; sleep 60"));
  // All are up before the hunt: one killed between fork and exec of its child orphans it.
  Job job(shell("setsid sh -c 'env -i sh -c \"echo on; exec sleep 60\" & sleep 61' & "
                "(setsid sh -c 'echo on; exec sleep 62' &); echo on; sleep 63"),
          how);
  CHECK(stranger.line() == "on");
  for (int one = 0; one < 3; ++one) CHECK(job.line() == "on");
  run::Quarry whom = quarry(job.pid());
  whom.born_from = born;
  run::Survivors survivors = run::kill_tree(whom, util::BootClock::now() + kPatience);
  CHECK(survivors.count == 0);
  CHECK(job.rest().empty());
  CHECK(job.at_end());
  CHECK(alive(stranger.pid()));
}

TEST_CASE("descent is known over generations") {
  Job job(shell("sh -c 'echo $$; sleep 60'; true"));
  pid_t grandchild = std::stoi(job.line());
  CHECK(run::descends_from(grandchild, getpid()));
  CHECK(run::descends_from(job.pid(), getpid()));
  CHECK_FALSE(run::descends_from(getpid(), job.pid()));
}
