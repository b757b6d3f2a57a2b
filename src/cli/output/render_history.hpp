#pragma once

#include <string>
#include <vector>

#include "cli/output/history_rows.hpp"

namespace rlock::cli {

enum class NameColumn { hidden, shown };

// For people: lines of at most `width` characters, printable whatever a server sent.
std::string history_table(const std::vector<HistoryLine>& lines, NameColumn name_column,
                          size_t width);

}  // namespace rlock::cli
