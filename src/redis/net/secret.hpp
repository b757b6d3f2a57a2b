#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "util/clock.hpp"
#include "util/result.hpp"

// A password that may change while we run. Shared by all connections, on several threads.
namespace rlock::redis {

// Where a password may come from; the commands that rlock starts do not inherit them.
inline constexpr const char* kPasswordVariables[] = {"RLOCK_PASSWORD", "REDISCLI_AUTH"};
inline bool is_password_variable(std::string_view name) {
  return std::find(std::begin(kPasswordVariables), std::end(kPasswordVariables), name) !=
         std::end(kPasswordVariables);
}

// What is odd about a password that was refused, such as `it ends with a carriage return`: files
// come from Windows, from editors and from secret stores. It shows no part of it; empty: nothing.
std::string oddity_of(std::string_view password);

class Secret {
 public:
  virtual ~Secret() = default;

  // The password that was read last; never waits.
  virtual std::string current() = 0;
  // Before a connect: reads it again where that is done each time. Until when fetched() is worth
  // waiting for; nullopt: current() will do.
  virtual std::optional<TimePoint> refresh() = 0;
  // The server refused `used`: fetches another one. Until when to wait for fetched(); nullopt:
  // current() is newer, or none is being fetched.
  virtual std::optional<TimePoint> fetch(std::string_view used) = 0;
  virtual bool fetched() const = 0;
  // Readable once fetched(); -1 for none.
  virtual int fd() const = 0;
};

// The content of a file without its last newline, read again at each connect, so that a rotated
// password is used at once. While the file cannot be read, or does not answer, as one of a hung
// mount, its last password stays in use. ErrorKind::config where it contains none now.
Result<std::shared_ptr<Secret>> secret_in_file(const std::string& path);

// The output of `command`, which runs at once, and again when the server refuses its password, at
// most every 5 s. ErrorKind::config where it prints none.
Result<std::shared_ptr<Secret>> secret_of_command(const std::string& command);

}  // namespace rlock::redis
