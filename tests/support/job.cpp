#include "support/job.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace rlock::test {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool alive(pid_t pid) {
  std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  size_t bracket = stat.rfind(')');
  return bracket != std::string::npos && stat.at(bracket + 2) != 'Z';
}

void send_signal(pid_t pid, int signal) {
  if (pid <= 1) throw std::invalid_argument("no process to send a signal to");
  kill(pid, signal);
}

Job::Job(std::vector<std::string> argv, const std::function<void()>& before_exec) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  out_.reset(ends[0]);
  util::Fd write_end(ends[1]);
  std::vector<char*> words;
  for (std::string& word : argv) words.push_back(word.data());
  words.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  util::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  dup2(null.get(), 0);
  dup2(write_end.get(), 1);
  if (before_exec) before_exec();
  execv(words[0], words.data());
  _exit(127);
}

Job::~Job() {
  if (pid_ <= 0) return;
  kill(pid_, SIGCONT);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Job::fill(TimePoint until) {
  pollfd fd{out_.get(), POLLIN, 0};
  if (poll(&fd, 1, poll_timeout(BootClock::now(), until)) <= 0) return false;
  char chunk[4096];
  ssize_t got = read(out_.get(), chunk, sizeof chunk);
  if (got > 0) {
    buffer_.append(chunk, static_cast<size_t>(got));
    return true;
  }
  at_end_ = true;
  ended_at_ = BootClock::now();
  return false;
}

std::string Job::line() {
  TimePoint until = BootClock::now() + kPatience;
  while (buffer_.find('\n') == std::string::npos && !at_end_ && fill(until)) {
  }
  size_t end = buffer_.find('\n');
  std::string text = buffer_.substr(0, end);
  buffer_.erase(0, end == std::string::npos ? end : end + 1);
  return text;
}

std::string Job::rest(Millis patience) {
  TimePoint until = BootClock::now() + patience;
  while (!at_end_ && fill(until)) {
  }
  return std::exchange(buffer_, {});
}

int Job::status(Millis patience) {
  if (pid_ <= 0) return -1;
  int raw = 0;
  bool ended = eventually([&] { return waitpid(pid_, &raw, WNOHANG) == pid_; }, patience);
  if (!ended) return -1;
  pid_ = -1;
  return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
}

}  // namespace rlock::test
