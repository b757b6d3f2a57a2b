#include "cli/output/inherited.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "util/text.hpp"

namespace rlock::cli {
namespace {

// The descriptor that the path names, or -1.
int named_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    return util::parse_number<int>(path.substr(folder.size())).value_or(-1);
  }
  return -1;
}

}  // namespace

bool is_inherited(int fd) {
  const int flags = fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

int inherited_descriptor(std::string_view path) {
  const int fd = named_descriptor(path);
  return is_inherited(fd) ? fd : -1;
}

bool names_closed_output(std::string_view path) {
  const int fd = named_descriptor(path);
  return fd >= 0 && fd <= STDERR_FILENO && !is_inherited(fd);
}

}  // namespace rlock::cli
