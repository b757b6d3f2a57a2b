#pragma once

#include <sys/types.h>

#include <string>

#include "cli/options/parse.hpp"
#include "run/background_renewer.hpp"

namespace rlock::cli {

// What a lock that is renewed while a process lives, and what the process, is called in notices.
struct NoticeSubject {
  std::string name;
  std::string server;
  pid_t pid = 0;
};

// One line `rlock: …` with its end. Empty where `quiet`, and it is only a warning.
std::string notice_line(const run::Notice& notice, const NoticeSubject& subject, bool quiet);

}  // namespace rlock::cli
