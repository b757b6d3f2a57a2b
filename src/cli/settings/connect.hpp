#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/parse.hpp"
#include "lock/store.hpp"
#include "redis/open.hpp"

namespace rlock::cli {

// --format; native if it was not given.
redis::Format format_choice(const Choices& choices);

// With a --format other than native, NAME is a key of another program.
Result<lock::LockName> parse_name(std::string_view text, const Choices& choices);

// ErrorKind::usage says why an option that was given cannot be used with --format.
Status check_format(const Choices& choices);

// Whether only the native format supports the option.
bool is_native_only(Opt option);

// The value of --owner, if given: without --format any text, because the lock may belong to another
// client; with --format an owner of that format.
Result<std::optional<lock::Owner>> owner_choice(const Choices& choices);

// Overwrites the passwords in the command line and the environment, which /proc shows, for this
// process and those that it forks. The words, including the command's, must have been copied
// before. getenv() still finds the passwords.
void hide_passwords(std::span<char*> words);

// Checks the values of --url and --prefix.
Status check_connection_setting(Opt id, const std::vector<std::string>& words);

// The server and the user to connect as. ErrorKind::config if no server is given or the password
// file cannot be read, ErrorKind::usage for a bad value.
Result<redis::OpenOptions> connection_options(const Choices& choices);

}  // namespace rlock::cli
