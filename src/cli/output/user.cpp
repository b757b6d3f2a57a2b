#include "cli/output/user.hpp"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace rlock::cli {
namespace {

struct CloseFile {
  void operator()(FILE* file) const noexcept { fclose(file); }
};

std::string from_passwd(uid_t uid) {
  std::unique_ptr<FILE, CloseFile> file(fopen("/etc/passwd", "re"));
  if (file == nullptr) return {};
  while (const passwd* entry = fgetpwent(file.get())) {
    if (entry->pw_uid == uid) return entry->pw_name;
  }
  return {};
}

}  // namespace

std::string user_name() {
  std::string name = from_passwd(geteuid());
  if (!name.empty()) return name;
  for (const char* variable : {"LOGNAME", "USER"}) {
    const char* value = getenv(variable);
    if (value != nullptr && *value != '\0') return value;
  }
  return std::to_string(geteuid());
}

}  // namespace rlock::cli
