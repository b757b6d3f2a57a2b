// As PID 1, and in a pid namespace that begins below rlock. [docs/SUPERVISION.md, "PID 1 and
// namespaces"]
#include <doctest/doctest.h>
#include <signal.h>

#include "run/proc.hpp"
#include "run_support.hpp"

using namespace rlock::test;

namespace {

std::vector<std::string> unshared(std::vector<std::string> options, std::vector<std::string> argv) {
  options.insert(options.begin(), "/usr/bin/unshare");
  // LeakSanitizer starts a thread, which `unshare -p` without a fork refuses.
  options.insert(options.end(), {"/usr/bin/env", "ASAN_OPTIONS=detect_leaks=0"});
  options.insert(options.end(), argv.begin(), argv.end());
  return options;
}

bool may_unshare() {
  static const bool may = Job(unshared({"-fp"}, {"/bin/true"})).status() == 0;
  if (!may) MESSAGE("skipped: this machine refuses new pid namespaces");
  return may;
}

// The only child of `parent`.
pid_t child_of(pid_t parent) {
  pid_t child = -1;
  rlock::run::for_each_number_in("/proc", [&](pid_t pid) {
    auto stat = rlock::run::read_stat(pid);
    if (stat && stat->parent == parent) child = pid;
  });
  return child;
}

}  // namespace

TEST_CASE("as PID 1 rlock reaps orphans, forwards signals and exits with 128+N") {
  if (!may_unshare()) return;
  Job job(
      unshared({"-fp", "--mount-proc"}, held({}, shell("(sh -c 'sleep 0.05 & exit' &); sleep 0.3; "
                                                       "ps -e -o stat= | grep -c Z; sleep 60"))));
  CHECK(job.line() == "0");
  send_signal(child_of(job.pid()), SIGTERM);
  CHECK(job.status() == 128 + SIGTERM);
}

TEST_CASE("below unshare -p without a fork: a command runs and ends") {
  if (!may_unshare()) return;
  Job job(unshared({"-p"}, held({}, shell("echo on; exit 5"))));
  CHECK(job.line() == "on");
  CHECK(job.status() == 5);
}

TEST_CASE("below unshare -p a stopped rlock is fenced, without hanging") {
  if (!may_unshare()) return;
  Job job(unshared({"-p"}, held({"ttl=1000"}, shell("setsid sleep 60 & echo on; sleep 61"))));
  CHECK(job.line() == "on");
  CHECK(closed_stdout(job.pid()));
  send_signal(job.pid(), SIGSTOP);
  CHECK(job.rest().empty());
  CHECK(job.at_end());
  send_signal(job.pid(), SIGCONT);
  CHECK(job.status() == 76);
}

TEST_CASE("where no renewal thread can start the command is ended at TERM time, 71") {
  if (!may_unshare()) return;
  Job job(unshared({"-p"}, held({"ttl=3000"}, shell("echo on; sleep 60"))));
  CHECK(job.line() == "on");
  CHECK(job.status() == 71);
  CHECK(job.rest().empty());
}
