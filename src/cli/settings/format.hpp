#pragma once

#include <optional>

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

}  // namespace rlock::cli
