#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "support/scratch.hpp"
#include "support/waiting.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

// Programs that a test starts, watches and ends.
namespace rlock::test {

std::string read_file(const std::string& path);

// Whether there is such a process, and it is no zombie.
bool alive(pid_t pid);

// kill(2), but a pid that was not found (-1 would be everybody) fails the test instead.
void send_signal(pid_t pid, int signal);

// One running program without input. Its stdout is a pipe that the test reads: end-of-file there
// means that nobody who inherited it is left. Killed and reaped when it goes out of scope.
class Job {
 public:
  // `before_exec` runs in the child.
  explicit Job(std::vector<std::string> argv, const std::function<void()>& before_exec = {});
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();

  pid_t pid() const { return pid_; }
  // The next line without its end; what there is at end-of-file or when patience ends.
  std::string line();
  // All that is left; sets ended_at() when end-of-file came.
  std::string rest(Millis patience = kPatience);
  bool at_end() const { return at_end_; }
  TimePoint ended_at() const { return ended_at_; }
  // `$?` as a shell shows it: 128 + N for a signal; -1 when patience ends.
  int status(Millis patience = kPatience);

 private:
  bool fill(TimePoint until);

  pid_t pid_ = -1;
  util::Fd out_;
  std::string buffer_;
  bool at_end_ = false;
  TimePoint ended_at_{};
};

}  // namespace rlock::test
