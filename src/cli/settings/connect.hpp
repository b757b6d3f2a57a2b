#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/options/parse.hpp"
#include "lock/store.hpp"
#include "redis/open.hpp"

namespace rlock::cli {

// --format; native where it was not given. ErrorKind::usage for another word.
Result<redis::Format> format_choice(const Choices& choices);

// ErrorKind::usage says why an option that was given cannot be used with --format.
Status check_format(const Choices& choices);

// Whether only the native format supports the option.
bool is_native_only(Opt option);

// --owner, where it was given: without --format any text, since the lock may be another client's;
// with it, an owner of that format.
Result<std::optional<lock::Owner>> owner_choice(const Choices& choices);

// getenv(3), or a test's.
using Getenv = const char* (*)(const char*);
const char* system_getenv(const char* name);
const char* empty_environment(const char* name);

// A variable that is set, but to nothing, counts as not set.
std::optional<std::string> variable(Getenv getenv, std::string_view name);

// The value of an option that has one variable: the one chosen, else the variable's.
std::optional<std::string> choice_or_variable(const Choices& choices, Opt id, Getenv getenv);

// Overwrites the passwords in the command line and the environment where /proc shows them, for this
// process and those that it forks; the words, the command's too, must have been copied. getenv()
// finds them as before.
void hide_passwords(std::span<char*> words);

// Where user and password are looked up: nowhere if a --url has its own or RLOCK_URL names a
// server, since those of the environment are then meant for another one, which must not see them.
Getenv credentials_environment(const Choices& choices, Getenv getenv);

// Where to connect and as which user: flags over the environment; the settings of files are among
// the choices already. ErrorKind::config when no server is given or the password file cannot be
// read, ErrorKind::usage for a bad value.
Result<redis::OpenOptions> connection_options(const Choices& choices, Getenv getenv);

}  // namespace rlock::cli
