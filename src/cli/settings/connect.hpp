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

// --owner, where it was given: without --format any text, since the lock may be another client's;
// with it, an owner of that format.
Result<std::optional<lock::Owner>> owner_choice(const Choices& choices);

// Overwrites the passwords in the command line and the environment where /proc shows them, for this
// process and those that it forks; the words, the command's too, must have been copied. getenv()
// finds them as before.
void hide_passwords(std::span<char*> words);

// Of --url and --prefix, what only a look at the value shows: that it is wrong.
Status check_connection_setting(Opt id, const std::vector<std::string>& words);

// Where to connect and as which user. ErrorKind::config when no server is given or the password
// file cannot be read, ErrorKind::usage for a bad value.
Result<redis::OpenOptions> connection_options(const Choices& choices);

}  // namespace rlock::cli
