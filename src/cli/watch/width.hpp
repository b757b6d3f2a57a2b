#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Text on a terminal, in columns: East Asian characters take two, combining ones none.
namespace rlock::cli {

size_t display_width(std::string_view text);

// At most `width` columns of text; where something was cut, the last one is an ellipsis.
std::string cut_to_width(std::string_view text, size_t width);

// Lines of at most `width` columns, cut at blanks where there are any; at least one.
std::vector<std::string> wrapped(std::string_view text, size_t width);

// Filled up with blanks to exactly `width` columns, or cut.
std::string padded(std::string_view text, size_t width);

// For a terminal that does not show UTF-8: each other character becomes a question mark, the
// ellipsis a tilde.
std::string to_ascii(std::string_view text);

}  // namespace rlock::cli
