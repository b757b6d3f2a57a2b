#pragma once

#include <string>
#include <vector>

namespace rlock::cli {

// A table for screens of any width: the columns that matter least are left out where there is no
// room for them.
struct ScreenColumn {
  std::string title;
  size_t least;  // columns of the terminal, below which it is left out
  size_t most;
  int rank;  // 0 matters most, and is never left out
};

// The titles, then one line for each row of cells, which are printable.
std::vector<std::string> laid_out(const std::vector<ScreenColumn>& columns,
                                  const std::vector<std::vector<std::string>>& rows, size_t width);

}  // namespace rlock::cli
