#include "run/survivors.hpp"

#include <pwd.h>

#include <cstring>

#include "run/proc.hpp"
#include "util/text.hpp"

namespace rlock::run {
namespace {

std::string user_name(uid_t user) {
  if (user == static_cast<uid_t>(-1)) return "another user";
  const passwd* entry = getpwuid(user);
  return entry != nullptr ? entry->pw_name : "uid " + std::to_string(user);
}

}  // namespace

std::vector<std::string> describe(const Survivors& survivors) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < survivors.size(); ++i) {
    const Survivor one = survivors[i];
    std::string line = "process " + std::to_string(one.pid);
    if (std::string name = read_name(one.pid); !name.empty()) {
      line += " (" + util::printable(name) + ")";
    }
    line += " of " + user_name(one.user);
    line += one.error == 0 ? ": killed, but hangs in the kernel"
                           : std::string(": ") + std::strerror(one.error);
    lines.push_back(std::move(line));
  }
  if (lines.empty()) lines.push_back("processes that /proc does not show");
  return lines;
}

std::string summary(const Survivors& survivors) {
  if (survivors.size() == 0) return "cannot end processes that /proc does not show";
  const Survivor first = survivors[0];
  std::string text = "cannot end pid " + std::to_string(first.pid) + " of " + user_name(first.user);
  if (survivors.size() > 1) text += " and " + std::to_string(survivors.size() - 1) + " more";
  return text;
}

}  // namespace rlock::run
