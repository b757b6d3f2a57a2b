#pragma once

#include <string>
#include <vector>

#include "cli/past.hpp"

namespace rlock::cli {

enum class Names { hidden, shown };

// For people: lines of at most `width` characters, printable whatever a server sent.
std::string history_table(const std::vector<HistoryLine>& lines, Names names, size_t width);

}  // namespace rlock::cli
