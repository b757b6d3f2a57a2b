// How a terminal shows the help; and rlock help --man, which shows the manual page that is
// installed with this program, or the text that it contains.
#include <unistd.h>

#include <climits>

#include "cli/commands/commands.hpp"
#include "cli/options/help.hpp"
#include "cli/output/console.hpp"
#include "cli/settings/resolve.hpp"
#include "cli/watch/screen.hpp"
#include "manual_text.hpp"
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
      const std::string page = prefix + "share/man/man1/" + name + ending;
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

Result<std::string> show_manual(std::optional<CommandId> command) {
  const std::string ending = (command ? "-" + std::string(row_of(*command).name) : "") + ".1";
  const std::string name = "rlock" + ending;
  const std::string page = installed_page(RLOCK_PROGRAM + ending);
  if (!page.empty()) execlp("man", "man", page.c_str(), nullptr);
  std::string text;
  for (const PageText& one : kManual) {
    if (!command || one.name == name) text += one.text;
  }
  if (!text.empty()) return text;
  return Error{ErrorKind::config,
               util::format("cannot show {}: no man(1), or no such page below {}../share/man, and "
                            "this program was built without the text of its manual; read rlock {} "
                            "--help",
                            name, program_folder(), command ? row_of(*command).name : "run")};
}

}  // namespace rlock::cli
