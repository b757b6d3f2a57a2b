// How a terminal shows the help; and rlock help --man, which shows the manual page that is
// installed with this program.
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "cli/commands/commands.hpp"
#include "cli/options/help.hpp"
#include "cli/output/console.hpp"
#include "cli/settings/resolve.hpp"
#include "cli/watch/screen.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// The folder of this program, or "" if /proc does not show it.
std::string program_folder() {
  std::string path(PATH_MAX, '\0');
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? static_cast<size_t>(length) : 0);
  return path.substr(0, path.rfind('/') + 1);
}

// Searches below the prefix of the program, and then where packages install the page, because the
// program may have been copied.
std::string installed_page(const std::string& name) {
  for (const std::string& prefix : {program_folder() + "../", std::string("/usr/")}) {
    for (const char* ending : {"", ".gz"}) {
      const std::string page = prefix + "share/man/man1/" + name + ".1" + ending;
      if (access(page.c_str(), R_OK) == 0) return page;
    }
  }
  return {};
}

}  // namespace

std::string shown_help(const std::string& help, int fd) {
  const bool bold = is_terminal(fd) && terminal_kind(system_getenv).colours;
  return bold ? with_bold_headings(help) : help;
}

Error show_manual(std::optional<CommandId> command) {
  const std::string word = command ? std::string(row_of(*command).name) : "COMMAND";
  const std::string name = command ? "rlock-" + word : "rlock";
  const std::string page = installed_page(name);
  if (page.empty()) {
    return {ErrorKind::config,
            util::format("the manual page {}(1) is not installed with this program: the packages "
                         "contain it, the source has it as man/{}.1; rlock {} --help explains "
                         "every option",
                         name, name, word)};
  }
  execlp("man", "man", page.c_str(), nullptr);
  return {ErrorKind::config,
          util::format("cannot execute man to show {}: {}; install man-db or mandoc, or read rlock "
                       "{} --help",
                       page, std::strerror(errno), word)};
}

}  // namespace rlock::cli
