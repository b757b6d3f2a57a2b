#include "cli/output/confirm.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "cli/output/console.hpp"
#include "util/fd.hpp"

namespace rlock::cli {

Confirmation confirm(const std::string& question) {
  if (!is_terminal(STDIN_FILENO) || !is_terminal(STDERR_FILENO)) return Confirmation::no_terminal;
  util::Fd terminal(open("/dev/tty", O_RDONLY | O_CLOEXEC));
  if (!terminal) return Confirmation::no_terminal;
  write_stderr(question, Millis(1000));
  char line[64];
  ssize_t n = 0;
  do {
    n = read(terminal.get(), line, sizeof line);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) write_stderr("\n", Millis(100));  // ^D leaves the cursor behind the question
  std::string_view answer(line, n > 0 ? static_cast<size_t>(n) : 0);
  bool yes = answer == "y\n" || answer == "Y\n" || answer == "yes\n" || answer == "YES\n";
  return yes ? Confirmation::yes : Confirmation::no;
}

}  // namespace rlock::cli
