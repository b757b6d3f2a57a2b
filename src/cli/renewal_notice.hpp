#pragma once

#include <sys/types.h>

#include <string>

#include "cli/parse.hpp"
#include "run/notice.hpp"

namespace rlock::cli {

// What a lock that is renewed while a process lives, and what the process, is called in notices.
struct RenewedWhile {
  std::string name;
  std::string server;
  pid_t pid = 0;
};

// One line `rlock: …` with its end. Empty where `quiet`, and it is only a warning.
std::string notice_line(const run::Notice& notice, const RenewedWhile& subject, bool quiet);

}  // namespace rlock::cli
