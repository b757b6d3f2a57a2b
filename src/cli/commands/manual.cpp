// How a terminal shows the help; and rlock help --man, which shows the manual page that is
// installed with this program, or the text that it contains.
#include <sys/mman.h>
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
std::string installed_page(const std::string& file) {
  std::string installed = util::format("share/man/man{}/{}", file.back(), file);
  // Only pages of section 1 are called like the program.
  if (file.ends_with(".1")) installed.replace(installed.rfind('/') + 1, 5, RLOCK_PROGRAM);
  for (const std::string& prefix : {program_folder() + "../", std::string("/usr/")}) {
    for (const char* ending : {"", ".gz"}) {
      const std::string page = prefix + installed + ending;
      if (access(page.c_str(), R_OK) == 0) return page;
    }
  }
  return {};
}

// Executes $PAGER or less with this text as its stdin. Returns if there is none.
void execute_pager(std::string_view text) {
  const int file = memfd_create("manual", MFD_CLOEXEC);
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return;
  if (lseek(file, 0, SEEK_SET) != 0 || dup2(file, STDIN_FILENO) < 0) return;
  const char* pager = system_getenv("PAGER");
  if (pager != nullptr && *pager != '\0') execl("/bin/sh", "sh", "-c", pager, nullptr);
  execlp("less", "less", nullptr);
}

}  // namespace

std::string shown_help(const std::string& help, int fd) {
  const bool bold = is_terminal(fd) && terminal_kind(system_getenv).colours;
  return bold ? with_bold_headings(help) : help;
}

Result<std::string> show_manual(const std::string& file) {
  const std::string page = installed_page(file);
  if (!page.empty()) execlp("man", "man", page.c_str(), nullptr);
  for (const PageText& one : kManual) {
    if (one.name != file) continue;
    if (is_terminal(STDOUT_FILENO)) execute_pager(one.text);
    return std::string(one.text);
  }
  return Error{ErrorKind::config,
               util::format("cannot show {}: no man(1), or no such page below {}../share/man, and "
                            "this program was built without the text of its manual; read rlock run "
                            "--help",
                            file, program_folder())};
}

}  // namespace rlock::cli
