#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rlock::cli {

// Insertions, deletions, replacements and swapped neighbours between the two, in bytes.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that a mistyped word most likely meant, if one is near enough.
std::optional<std::string_view> suggestion(std::string_view word,
                                           std::span<const std::string_view> candidates);

}  // namespace rlock::cli
