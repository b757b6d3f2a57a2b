#include "cli/watch/columns.hpp"

#include <algorithm>
#include <numeric>

#include "cli/watch/width.hpp"

namespace rlock::cli {
namespace {

using Cells = std::vector<std::string>;

size_t gap_of(size_t width) {
  constexpr size_t kRoomy = 60;
  return width < kRoomy ? 1 : 2;
}

std::vector<size_t> wanted_widths(const std::vector<ScreenColumn>& columns,
                                  const std::vector<Cells>& rows) {
  std::vector<size_t> wanted;
  for (size_t i = 0; i < columns.size(); ++i) {
    size_t widest = display_width(columns[i].title);
    for (const Cells& cells : rows) widest = std::max(widest, display_width(cells[i]));
    wanted.push_back(std::min(widest, columns[i].most));
  }
  return wanted;
}

// The width of each column; 0: left out. First the columns that have room for the least, by rank,
// then what is left over goes to them in the same order.
std::vector<size_t> widths_of(const std::vector<ScreenColumn>& columns,
                              const std::vector<size_t>& wanted, size_t width) {
  std::vector<size_t> order(columns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return columns[a].rank < columns[b].rank; });
  std::vector<size_t> widths(columns.size());
  size_t used = 0;
  for (size_t i : order) {
    const size_t gap = used == 0 ? 0 : gap_of(width);
    const size_t least = std::min(wanted[i], columns[i].least);
    if (used > 0 && used + gap + least > width) break;
    widths[i] = std::min(least, width);
    used += gap + widths[i];
  }
  for (size_t i : order) {
    if (widths[i] == 0) continue;
    const size_t more = std::min(wanted[i] - widths[i], width - std::min(width, used));
    widths[i] += more;
    used += more;
  }
  return widths;
}

std::string line_of(const Cells& cells, const std::vector<size_t>& widths, size_t gap) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (widths[i] == 0) continue;
    if (!line.empty()) line.append(gap, ' ');
    line += padded(cells[i], widths[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::vector<std::string> laid_out(const std::vector<ScreenColumn>& columns,
                                  const std::vector<Cells>& rows, size_t width) {
  const auto widths = widths_of(columns, wanted_widths(columns, rows), width);
  Cells titles;
  for (const ScreenColumn& column : columns) titles.push_back(column.title);
  std::vector<std::string> lines{line_of(titles, widths, gap_of(width))};
  for (const Cells& cells : rows) lines.push_back(line_of(cells, widths, gap_of(width)));
  return lines;
}

}  // namespace rlock::cli
