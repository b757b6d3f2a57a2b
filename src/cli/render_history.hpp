#pragma once

#include <string>
#include <vector>

#include "cli/past.hpp"

namespace rlock::cli {

// For people, the newest first: lines of at most `width` characters, printable whatever a server
// sent.
std::string history_table(const Chronicle& chronicle, size_t width);

}  // namespace rlock::cli
