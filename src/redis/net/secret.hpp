#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "util/clock.hpp"
#include "util/result.hpp"

// A password that may change while rlock runs. All connections share it, on several threads.
namespace rlock::redis {

// The variables that may contain a password; commands that rlock starts do not inherit them.
inline constexpr const char* kPasswordVariables[] = {"RLOCK_PASSWORD", "REDISCLI_AUTH"};
inline bool is_password_variable(std::string_view name) {
  return std::find(std::begin(kPasswordVariables), std::end(kPasswordVariables), name) !=
         std::end(kPasswordVariables);
}

// What is odd about a refused password, such as `it ends with a carriage return`, because files
// come from Windows, from editors and from secret stores. The text shows no part of the password;
// empty if nothing is odd.
std::string oddity_of(std::string_view password);

class Secret {
 public:
  virtual ~Secret() = default;

  // The password that was read last. Never waits.
  virtual std::string current() = 0;
  // Call before a connect: reads the password again if its source requires that. Returns until when
  // to wait for fetched(); nullopt: use current().
  virtual std::optional<TimePoint> refresh() = 0;
  // Call if the server refused `used`: fetches another password. Returns until when to wait for
  // fetched(); nullopt: current() is newer, or nothing is being fetched.
  virtual std::optional<TimePoint> fetch(std::string_view used) = 0;
  virtual bool fetched() const = 0;
  // Readable once fetched(); -1 for none.
  virtual int fd() const = 0;
};

// The content of a file without its last newline, read again at each connect, so that a rotated
// password is used immediately. If the file cannot be read, or does not answer, for example on a
// hung mount, its last password stays in use. ErrorKind::config if the file contains no password
// now.
Result<std::shared_ptr<Secret>> secret_in_file(const std::string& path);

// The output of `command`, which runs immediately, and again when the server refuses its password,
// at most every 5 s. ErrorKind::config if it prints no password.
Result<std::shared_ptr<Secret>> secret_of_command(const std::string& command);

}  // namespace rlock::redis
