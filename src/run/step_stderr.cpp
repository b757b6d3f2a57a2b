#include "run/step_stderr.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "run/proc.hpp"
#include "util/fd.hpp"

namespace rlock::run {
namespace {

// The link of a descriptor belongs to the process's user, and has the permissions of its mode.
bool ours_to_write(const char* link) noexcept {
  struct stat info {};
  return lstat(link, &info) == 0 && S_ISLNK(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & S_IWUSR) != 0;
}

bool takes_lines(int fd) noexcept {
  struct stat info {};
  return fstat(fd, &info) == 0 &&
         (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode));
}

}  // namespace

void write_to_stderr_of(pid_t pid, std::string_view line) noexcept {
  if (!proc_is_ours()) return;
  const std::string link = "/proc/" + std::to_string(pid) + "/fd/2";
  if (!ours_to_write(link.c_str())) return;
  const util::Fd out(open(link.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!out || !takes_lines(out.get())) return;
  [[maybe_unused]] ssize_t written = write(out.get(), line.data(), line.size());
}

}  // namespace rlock::run
