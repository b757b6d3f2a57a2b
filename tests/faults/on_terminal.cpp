#include "faults/on_terminal.hpp"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "util/fd.hpp"

namespace rlock::test {
namespace {

// False at the end: the last one on the terminal is gone, or patience is.
bool read_some(int terminal, std::string& text, TimePoint until) {
  pollfd readable{terminal, POLLIN, 0};
  if (poll(&readable, 1, poll_timeout(BootClock::now(), until)) <= 0) return false;
  char chunk[16384];
  ssize_t got = read(terminal, chunk, sizeof chunk);
  if (got <= 0) return false;
  text.append(chunk, static_cast<size_t>(got));
  return true;
}

}  // namespace

Shown on_terminal(std::vector<std::string> argv, Millis patience, size_t memory) {
  std::vector<char*> words;
  for (std::string& word : argv) words.push_back(word.data());
  words.push_back(nullptr);
  const TimePoint start = BootClock::now();
  int master = -1;
  pid_t pid = forkpty(&master, nullptr, nullptr, nullptr);
  if (pid == 0) {
    rlimit limit{memory, memory};
    setrlimit(RLIMIT_AS, &limit);
    execv(words[0], words.data());
    _exit(127);
  }
  if (pid < 0) throw std::runtime_error("no terminal can be opened here");
  util::Fd terminal(master);
  Shown shown;
  while (read_some(terminal.get(), shown.text, start + patience)) continue;
  shown.took = std::chrono::duration_cast<Millis>(BootClock::now() - start);
  bool late = shown.took >= patience;
  if (late) kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!late) shown.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return shown;
}

}  // namespace rlock::test
