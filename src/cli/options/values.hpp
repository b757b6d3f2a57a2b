#pragma once

#include <cstdint>
#include <optional>

#include "cli/options/parse.hpp"
#include "util/clock.hpp"

// Option texts understood. Nothing where the option was not given; ErrorKind::usage names the
// option.
namespace rlock::cli {

// `--wait`, or `-c` for an option that has only a letter.
std::string shown_name(Opt id);

Result<std::optional<Millis>> duration_choice(const Choices& choices, Opt id);

// Tokens are exact as JSON integers.
inline constexpr uint64_t kGreatestToken = (uint64_t{1} << 53) - 1;

// A decimal number of at most `most`.
Result<std::optional<uint64_t>> number_choice(const Choices& choices, Opt id, uint64_t most);

}  // namespace rlock::cli
