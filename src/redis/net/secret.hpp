#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "util/clock.hpp"
#include "util/result.hpp"

// A password that may change while we run. Shared by all connections, on several threads.
namespace rlock::redis {

class Secret {
 public:
  virtual ~Secret() = default;

  // What to introduce ourselves with now; never waits.
  virtual std::string current() = 0;
  // The server refused `used`. True: another one is being fetched; current() has it once fetched().
  virtual bool fetch(std::string_view used) = 0;
  virtual bool fetched() const = 0;
  // Readable once fetched(); -1 for none.
  virtual int fd() const = 0;
};

// The first line of a file, read at each connect: whoever rotates the password writes it there.
// While the file cannot be read, the password that it held last is good. ErrorKind::config where it
// holds none now.
Result<std::shared_ptr<Secret>> secret_in_file(const std::string& path);

// What `command` prints: it runs here for the first time, and again where the server refuses what
// it printed, at most every 5 s. ErrorKind::config where it prints none.
Result<std::shared_ptr<Secret>> secret_of_command(const std::string& command);

// Runs `command` by /bin/sh in a session of its own, for 5 s at most: the first line that it
// prints. ErrorKind::config says why there is none.
Result<std::string> run_secret_command(const std::string& command);

}  // namespace rlock::redis
