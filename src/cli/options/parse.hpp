#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/options/choices.hpp"
#include "util/result.hpp"

namespace rlock::cli {

// Parses the words after the program's name. ErrorKind::usage for an unknown word (the error
// suggests the most similar known one) and for a missing value. Everything after the first `--` is
// kept byte for byte.
Result<CommandLine> parse(std::span<const std::string> words);

// Whether an error of parse() itself is to be printed as JSON too.
bool asks_for_json(std::span<const std::string> words);

// Insertions, deletions, replacements and swapped neighbours between the two, in bytes.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that a mistyped word most likely meant, if one is similar enough.
std::optional<std::string_view> suggestion(std::string_view word,
                                           std::span<const std::string_view> candidates);

}  // namespace rlock::cli
