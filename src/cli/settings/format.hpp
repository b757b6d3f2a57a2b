#pragma once

#include <optional>
#include <string_view>

#include "cli/options/parse.hpp"
#include "lock/store.hpp"
#include "redis/open.hpp"

namespace rlock::cli {

// `native`, `plain` or `redisson`.
std::string_view to_string(redis::Format format);

// --format; native where it was not given. ErrorKind::usage for another word.
Result<redis::Format> format_choice(const Choices& choices);

// ErrorKind::usage says why an option that was given makes no sense with --format.
Status check_format(const Choices& choices);

// Whether only the native format has room for what the option asks for.
bool is_native_only(Opt option);

// --owner, where it was given: without --format any text, since the lock may be another client's;
// with it, what that format has.
Result<std::optional<lock::Owner>> owner_choice(const Choices& choices);

}  // namespace rlock::cli
