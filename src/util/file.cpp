#include "util/file.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

namespace rlock::util {

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
  return Error{ErrorKind::system, "it is longer than " + std::to_string(most / 1024) + " KiB"};
}

Result<std::string> absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  std::array<char, PATH_MAX> here;
  if (getcwd(here.data(), here.size()) == nullptr) {
    return Error{ErrorKind::system, std::strerror(errno)};
  }
  return std::string(here.data()) + "/" + path;
}

}  // namespace rlock::util
