// With a controlling terminal. [docs/SUPERVISION.md, "Terminal"]
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "run/proc.hpp"
#include "run_support.hpp"

using namespace rlock::test;

namespace {

// A terminal with a session of its own, led by a program.
class TerminalJob {
 public:
  explicit TerminalJob(std::vector<std::string> argv) {
    std::vector<char*> words;
    for (std::string& word : argv) words.push_back(word.data());
    words.push_back(nullptr);
    int fd = -1;
    pid_ = forkpty(&fd, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      execv(words[0], words.data());
      _exit(127);
    }
    master_.reset(fd);
  }
  TerminalJob(const TerminalJob&) = delete;
  TerminalJob& operator=(const TerminalJob&) = delete;
  ~TerminalJob() {
    if (pid_ <= 1) return;
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  int fd() const { return master_.get(); }
  void type(const std::string& keys) const {
    CHECK(write(master_.get(), keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }
  // Reads on until `text` has been shown; everything shown so far stays in shown().
  bool shows(const std::string& text) {
    rlock::TimePoint until = rlock::BootClock::now() + kPatience;
    while (shown_.find(text) == std::string::npos) {
      pollfd fd{master_.get(), POLLIN, 0};
      if (poll(&fd, 1, rlock::poll_timeout(rlock::BootClock::now(), until)) <= 0) break;
      char chunk[4096];
      ssize_t got = read(master_.get(), chunk, sizeof chunk);
      if (got <= 0) break;
      shown_.append(chunk, static_cast<size_t>(got));
    }
    return shown_.find(text) != std::string::npos;
  }
  const std::string& shown() const { return shown_; }
  int status() {
    int raw = 0;
    if (!eventually([&] { return waitpid(pid_, &raw, WNOHANG) == pid_; })) return -1;
    return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  }

 private:
  pid_t pid_ = -1;
  rlock::util::Fd master_;
  std::string shown_;
};

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

char state_of(pid_t pid) {
  auto stat = rlock::run::read_stat(pid);
  return stat ? stat->state : '?';
}

std::string hold_line(const std::string& command) {
  return std::string(RUN_HOLD) + " -- /bin/sh -c '" + command + "'";
}

}  // namespace

TEST_CASE("with a terminal the command stays in rlock's process group") {
  TerminalJob job(held({}, shell("echo group=$(ps -o pgid= -p $$ | tr -d \" \") end; read line")));
  CHECK(job.shows("end"));
  CHECK(job.shown().find("group=" + std::to_string(job.pid()) + " end") != std::string::npos);
  job.type("x\n");
  CHECK(job.status() == 0);
}

TEST_CASE("^C and ^\\ reach the command once") {
  TerminalJob job(held({}, {RUN_PROBE, "signals"}));
  CHECK(job.shows("ready"));
  job.type("\x03");
  CHECK(job.shows("2\r\n"));
  job.type("\x1c");
  CHECK(job.shows("3\r\n"));
  send_signal(job.pid(), SIGUSR1);
  CHECK(job.shows("10\r\n"));
  job.type("\x04");
  CHECK(job.status() == 0);
  CHECK(count(job.shown(), "2\r\n") == 1);
  CHECK(count(job.shown(), "3\r\n") == 1);
}

TEST_CASE("^C ends a command that does not mind it, and rlock dies by it too") {
  TerminalJob job(held({}, {"/bin/cat"}));
  job.type("x\n");
  CHECK(job.shows("x\r\nx\r\n"));
  job.type("\x03");
  CHECK(job.status() == 128 + SIGINT);
}

TEST_CASE("^C ends the loop of a shell around rlock") {
  TerminalJob job(
      {"/bin/bash", "-c",
       "for i in 1 2 3; do echo turn $i; " + hold_line("sleep 60") + "; done; echo after"});
  CHECK(job.shows("turn 1"));
  usleep(100'000);
  job.type("\x03");
  CHECK(job.status() == 128 + SIGINT);
  CHECK(job.shown().find("turn 2") == std::string::npos);
}

TEST_CASE("^C at any moment of the start ends rlock and command") {
  auto seed = static_cast<unsigned>(rlock::BootClock::now().time_since_epoch().count());
  MESSAGE("seed " << seed);
  srand(seed);
  bool ended = true;
  for (int round = 0; ended && round < 150; ++round) {
    TerminalJob job({"/bin/bash", "-c", "echo on; " + hold_line("exec sleep 60") + "; echo after"});
    CHECK(job.shows("on"));
    usleep(static_cast<useconds_t>(rand() % 8'000));
    job.type("\x03");
    ended = job.status() == 128 + SIGINT;
    CHECK(ended);
  }
}

TEST_CASE("^C between the grant and the fork of the command ends it, whichever guard forks it") {
  for (const char* large : {"large=0", "large=1"}) {
    TerminalJob job(held({"pressed=1", large}, {"/bin/sleep", "60"}));
    CHECK(job.shows("press"));
    job.type("\x03");
    CHECK(job.status() == 128 + SIGINT);
  }
}

TEST_CASE("^Z stops rlock and command, fg resumes both") {
  TerminalJob job({"/bin/bash", "--norc", "--noprofile", "-i"});
  job.type("PS1=; " + hold_line("echo o''n; sleep 0.7; echo do''ne") + "; echo co''de $?\n");
  CHECK(job.shows("on\r\n"));
  job.type("\x1a");
  CHECK(job.shows("Stopped"));
  job.type("fg >/dev/null\n");
  CHECK(job.shows("done\r\n"));
  job.type("exit\n");
  CHECK(job.status() >= 0);
}

TEST_CASE("a command killed in raw mode leaves the terminal as it was") {
  TerminalJob job(held({"max_run=300"}, shell("stty raw -echo; echo on; sleep 60")));
  CHECK(job.shows("on"));
  CHECK(eventually([&] {
    termios modes{};
    return tcgetattr(job.fd(), &modes) == 0 && (modes.c_lflag & ICANON) != 0 &&
           (modes.c_lflag & ECHO) != 0;
  }));
  CHECK(job.status() == 124);
}

TEST_CASE("modes that a command set and left on purpose stay") {
  TerminalJob job({"/bin/sh", "-c", hold_line("stty -echo") + "; stty -a; echo end"});
  CHECK(job.shows("end"));
  CHECK(job.shown().find(" -echo ") != std::string::npos);
}

TEST_CASE("a shell with job control inside: its stop stops rlock, and fg brings both back") {
  TerminalJob job({"/bin/bash", "--norc", "--noprofile", "-i"});
  job.type("PS1='outer> '\n");
  job.type(std::string(RUN_HOLD) + " -- /bin/bash --norc --noprofile -i\n");
  CHECK(eventually([&] { return tcgetpgrp(job.fd()) > 0 && tcgetpgrp(job.fd()) != job.pid(); }));
  job.type("PS1='inner> '; echo in''ner=$$\n");
  CHECK(job.shows("inner="));
  job.shows("inner> ");
  job.type("suspend -f\n");
  CHECK(job.shows("Stopped"));
  job.type("echo out''er\n");
  CHECK(job.shows("outer\r\n"));
  job.type("fg\n");
  job.type("echo ag''ain\n");
  CHECK(job.shows("again"));
  job.type("exit 3\n");
  job.type("echo co''de=$?\n");
  CHECK(job.shows("code=3"));
  job.type("exit\n");
  CHECK(job.status() >= 0);
}

TEST_CASE("on a terminal the tree is killed, not the group that others share") {
  TerminalJob job({"/bin/sh", "-c",
                   std::string(RUN_HOLD) + " max_run=200 -- /bin/sh -c 'setsid sleep 60 & sleep 61'"
                                           "; echo code=$?; sleep 0.2; echo alive"});
  CHECK(job.shows("alive"));
  CHECK(job.shown().find("code=124") != std::string::npos);
}

TEST_CASE("a stop that outlasts the lease ends the command, and rlock says so when resumed") {
  TerminalJob job({"/bin/bash", "--norc", "--noprofile", "-i"});
  job.type("PS1=; " + std::string(RUN_HOLD) +
           " ttl=1000 -- /bin/sh -c 'echo p''id=$$.; sleep 60'\n");
  CHECK(job.shows(".\r\n"));
  size_t at = job.shown().find("pid=");
  REQUIRE(at != std::string::npos);
  pid_t command = std::stoi(job.shown().substr(at + 4));
  job.type("\x1a");
  CHECK(job.shows("Stopped"));
  CHECK(eventually([&] { return !alive(command) || state_of(command) == 'Z'; }));
  job.type("fg >/dev/null; echo co''de=$?\n");
  CHECK(job.shows("code=76"));
  job.type("exit\n");
  CHECK(job.status() >= 0);
}
