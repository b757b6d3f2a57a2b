#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "util/fd.hpp"
#include "util/result.hpp"

namespace rlock::run {

// Another process, of which only its end matters. A reused pid does not pass for it.
class ProcessHandle {
 public:
  enum class By { pidfd, start_time };

  // ErrorKind::usage where there is no such process, or it has ended. By start time where the
  // kernel has no pidfd for us.
  static Result<ProcessHandle> open(pid_t pid, By by = By::pidfd);

  pid_t pid() const { return pid_; }
  bool ended() const;
  // Readable once it has ended; -1 where that has to be looked for now and then.
  int fd() const { return pidfd_.get(); }

 private:
  explicit ProcessHandle(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  util::Fd pidfd_;
  std::optional<uint64_t> born_;  // where /proc shows it to us
};

}  // namespace rlock::run
