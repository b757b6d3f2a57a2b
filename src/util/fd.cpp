#include "util/fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "util/process.hpp"
#include "util/random.hpp"
#include "util/text.hpp"

namespace rlock::util {

void Fd::reset(int fd) noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

int open_null() noexcept {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  return null >= 0 ? null : open("/", O_PATH | O_CLOEXEC);
}

bool is_regular_file(int fd) noexcept {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

Result<std::string> read_to_end(const Fd& file, size_t most) {
  std::string text;
  char buffer[4096];
  while (text.size() <= most) {
    ssize_t n = read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{ErrorKind::system, std::strerror(errno)};
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
  return Error{ErrorKind::system, util::format("it is longer than {} KiB", most / 1024)};
}

namespace {

// Returns 0, or the errno of the call that failed. A full disk or a file server may report an error
// only at the end.
int write_and_close(Fd file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write_without_signal(file.get(), text);
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  return close(file.release()) == 0 ? 0 : errno;
}

}  // namespace

Status replace_file(const std::string& path, std::string_view text) {
  auto failed = [](const std::string& name, int error) {
    return system_error("cannot write " + printable(name), error);
  };
  SystemRandom random;
  const std::string beside = path + "." + random_hex(random);
  Fd file(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file) return failed(path, errno);
  int error = write_and_close(std::move(file), text);
  if (error == 0 && rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return Done{};
  unlink(beside.c_str());
  return failed(path, error);
}

std::string absolute(const std::string& path) {
  std::array<char, PATH_MAX> here;
  if (path.empty() || path.starts_with('/')) return path;
  if (getcwd(here.data(), here.size()) == nullptr) return path;
  return std::string(here.data()) + "/" + path;
}

}  // namespace rlock::util
