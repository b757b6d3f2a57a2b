// The tree of a command, known by descent.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "run/process_tree.hpp"
#include "support/job.hpp"
#include "support/waiting.hpp"
#include "util/process.hpp"

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;
using Listing = run::ProcessTree::Listing;

namespace {

// The thread sanitizer runs a thread in each process and does not survive a fork there.
#ifdef __SANITIZE_THREAD__
constexpr bool kUnderThreadSanitizer = true;
#else
constexpr bool kUnderThreadSanitizer = false;
#endif

std::vector<std::string> shell(const std::string& text) {
  return {"/bin/sh", "-c", text};
}

// What a child of ours says with `child`, which is given the descriptor to write to.
std::string said_by(const std::function<void(int out)>& child) {
  int out[2];
  REQUIRE(pipe(out) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    close(out[0]);
    child(out[1]);
  }
  close(out[1]);
  char text[16] = {};
  ssize_t got = read(out[0], text, sizeof text - 1);
  close(out[0]);
  waitpid(pid, nullptr, 0);
  return got > 0 ? std::string(text) : "";
}

// Whether `holds` in a child of ours.
bool holds_in_a_child(const std::function<bool()>& holds) {
  const pid_t pid = fork();
  if (pid == 0) _exit(holds() ? 0 : 1);
  int status = 0;
  return waitpid(pid, &status, 0) == pid && status == 0;
}

// Ends the tree again and again until it is gone.
bool ends(run::ProcessTree& tree, run::Survivors& survivors) {
  return eventually([&] { return tree.end(BootClock::now() + 20ms, survivors); });
}

// In a process of its own, which is a subreaper as the guard is: starts `script` below it, waits
// until it has printed as many words as `words`, ends the tree, and prints `gone` or `left`.
[[noreturn]] void end_a_tree(const std::string& script, int words, Listing listing, int out) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int said[2];
  if (pipe(said) != 0) _exit(1);
  if (fork() == 0) {
    dup2(said[1], STDOUT_FILENO);
    close(said[0]);
    close(said[1]);
    execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    _exit(127);
  }
  close(said[1]);
  char word = 0;
  for (int lines = 0; lines < words && read(said[0], &word, 1) == 1;) lines += word == '\n';
  static run::SharedState state;
  static run::ProcessTree tree(run::Grouping::callers, getsid(0), state);
  tree.open(listing);
  run::Survivors survivors;
  const bool gone = ends(tree, survivors);
  // The end of the pipe: nobody below has it open any more.
  fcntl(said[0], F_SETFL, O_NONBLOCK);
  ssize_t rest = 0;
  while ((rest = read(said[0], &word, 1)) > 0) continue;
  const char* text = gone && rest == 0 && survivors.size() == 0 ? "gone\n" : "left\n";
  [[maybe_unused]] ssize_t written = write(out, text, 5);
  _exit(0);
}

// Children in groups and sessions of their own, orphans, with and without an environment.
constexpr char kFamily[] =
    "setsid sh -c 'env -i sh -c \"echo on; exec sleep 60\" & echo on; sleep 61' & "
    "(setsid sh -c 'echo on; exec sleep 62' &); timeout 63 sh -c 'echo on; sleep 64' & "
    "bash -mc 'sh -c \"echo on; exec sleep 65\" & wait' & "
    "setsid sh -c 'while :; do sleep 0.03 & sleep 0.01; done' & echo on; sleep 66";

}  // namespace

TEST_CASE("a stat line is read past a name with brackets and blanks") {
  prctl(PR_SET_NAME, "a) S 1 (b");
  auto stat = util::read_stat(getpid());
  prctl(PR_SET_NAME, "unit_run");
  REQUIRE(stat.has_value());
  CHECK(stat->parent == getppid());
  CHECK(stat->group == getpgrp());
  CHECK(stat->session == getsid(0));
  CHECK(stat->threads == 1);
  CHECK_FALSE(stat->before_exec());
  CHECK_FALSE(util::read_stat(0x3ffffff).has_value());
}

TEST_CASE("the tree is complete even if the kernel keeps no lists of children" *
          doctest::skip(kUnderThreadSanitizer)) {
  Job stranger(shell("echo on; exec sleep 60"));
  CHECK(stranger.line() == "on");
  CHECK(said_by([](int out) { end_a_tree(kFamily, 6, Listing::scan, out); }) == "gone\n");
  CHECK(alive(stranger.pid()));
}

pid_t sleeper() {
  const pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  return pid;
}

// As PID 1 without /proc, as in a bare container: ends the tree of one of two processes, and says
// what became of the other.
const char* end_one_of_two() {
  const pid_t other = sleeper();
  const pid_t command = sleeper();
  static run::SharedState state;
  static run::ProcessTree tree(run::Grouping::callers, getsid(0), state);
  tree.set_command(command);
  run::Survivors survivors;
  tree.end(BootClock::now() + 20ms, survivors);
  while (kill(command, 0) == 0) tree.reap();
  return kill(other, 0) == 0 ? "alive" : "ended";
}

// "refused": this machine allows no new namespaces.
[[noreturn]] void enter_namespace(int out) {
  auto print = [&](const char* text) {
    [[maybe_unused]] ssize_t written = write(out, text, std::strlen(text));
    _exit(0);
  };
  if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) print("refused");
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) print("refused");
  if (mount("none", "/proc", "tmpfs", 0, nullptr) != 0) print("refused");
  const pid_t first = fork();
  if (first == 0) print(end_one_of_two());
  waitpid(first, nullptr, 0);
  _exit(0);
}

TEST_CASE("as PID 1 without /proc rlock stops only the command" *
          doctest::skip(kUnderThreadSanitizer)) {
  const std::string other = said_by(enter_namespace);
  if (other == "refused") {
    MESSAGE("skipped: this machine refuses new namespaces");
    return;
  }
  CHECK(other == "alive");
}

[[noreturn]] void sleep_on() {
  while (true) pause();
}

// Whether a tree is gone whose only process is dead, but held by a tracer that does not wait for
// it.
bool is_gone_in_the_hands_of_a_tracer() {
  int ready[2];
  if (pipe(ready) != 0) return false;
  const pid_t traced = fork();
  if (traced == 0) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    sleep_on();
  }
  const pid_t tracer = fork();
  if (tracer == 0) {
    while (ptrace(PTRACE_SEIZE, traced, 0, 0) != 0) usleep(1000);
    [[maybe_unused]] ssize_t written = write(ready[1], "x", 1);
    sleep_on();
  }
  char seized = 0;
  [[maybe_unused]] ssize_t got = read(ready[0], &seized, 1);
  static run::SharedState state;
  state.exempt.add(tracer);
  static run::ProcessTree tree(run::Grouping::callers, getsid(0), state);
  tree.open();
  run::Survivors survivors;
  const bool gone = ends(tree, survivors);
  kill(tracer, SIGKILL);
  return gone;
}

TEST_CASE("a dead process that a tracer holds counts as gone" *
          doctest::skip(kUnderThreadSanitizer)) {
  CHECK(holds_in_a_child(is_gone_in_the_hands_of_a_tracer));
}

// A command that has one child, in a session of its own: true when a TERM to the tree ends both.
bool term_ends_both(run::ProcessTree& tree) {
  int ready[2];
  if (pipe(ready) != 0) return false;
  const pid_t command = fork();
  if (command == 0) {
    if (fork() == 0) setsid();
    [[maybe_unused]] ssize_t written = write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char both[2];
  ssize_t got = 0;
  while (got < 2) got += std::max<ssize_t>(read(ready[0], both, 1), 0);
  close(ready[0]);
  close(ready[1]);
  tree.set_command(command);
  tree.signal({SIGTERM, 0}, {}, BootClock::now() + 10s);
  return eventually([] {
    while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
    return waitpid(-1, nullptr, WNOHANG) < 0;
  });
}

// The child may become ours while we look for it: hence many times.
TEST_CASE("a signal reaches processes that lose their parent to it" *
          doctest::skip(kUnderThreadSanitizer)) {
  CHECK(holds_in_a_child([] {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGTERM, SIG_DFL);  // doctest's handler would report a crash of each command
    static run::SharedState state;
    static run::ProcessTree tree(run::Grouping::callers, getsid(0), state);
    int ended = 0;
    while (ended < 300 && term_ends_both(tree)) ++ended;
    run::Survivors survivors;
    tree.end(BootClock::now() + 1s, survivors);
    return ended == 300;
  }));
}

// A child that forks twice: the one in between ends while its descent is looked up.
bool is_descendant_while_its_parent_ends() {
  int line[2];
  int done[2];
  if (pipe(line) != 0 || pipe(done) != 0) return false;
  const pid_t child = fork();
  if (child == 0) {
    close(done[1]);
    const pid_t middle = fork();
    if (middle == 0) {
      if (fork() != 0) _exit(0);
      const pid_t self = getpid();
      [[maybe_unused]] ssize_t written = write(line[1], &self, sizeof self);
      [[maybe_unused]] ssize_t ended = read(done[0], &written, 1);
      _exit(0);
    }
    waitpid(middle, nullptr, 0);
    [[maybe_unused]] ssize_t ended = read(done[0], line, 1);
    _exit(0);
  }
  pid_t grandchild = 0;
  bool known = read(line[0], &grandchild, sizeof grandchild) == sizeof grandchild;
  for (int look = 0; look < 5; ++look) known = util::descends_from(grandchild, getpid()) && known;
  for (int end : {line[0], line[1], done[0], done[1]}) close(end);
  while (waitpid(-1, nullptr, 0) > 0) continue;
  return known;
}

TEST_CASE("descent is known even while a process in between exits" *
          doctest::skip(kUnderThreadSanitizer)) {
  CHECK(holds_in_a_child([] {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int known = 0;
    while (known < 1000 && is_descendant_while_its_parent_ends()) ++known;
    return known == 1000;
  }));
}

TEST_CASE("the signals that a process ignores are known, however many groups its user has" *
          doctest::skip(kUnderThreadSanitizer || geteuid() != 0)) {
  CHECK(holds_in_a_child([] {
    std::vector<gid_t> groups(2000);
    for (size_t i = 0; i < groups.size(); ++i) groups[i] = 4'000'000'000U + static_cast<gid_t>(i);
    if (setgroups(groups.size(), groups.data()) != 0) return false;
    signal(SIGHUP, SIG_IGN);
    const util::Fd folder(util::open_process(getpid()));
    return util::ignores_in(folder.get(), SIGHUP);
  }));
}

TEST_CASE("a process that repeatedly asks to outlive the run displaces no other") {
  static run::Exclusions asked;
  for (int time = 0; time < 200; ++time) asked.add(getpid());
  asked.add(getppid());
  CHECK(asked.contains(getpid()));
  CHECK(asked.contains(getppid()));
}
