#include "cli/output/table.hpp"

#include <algorithm>
#include <numeric>

#include "util/text.hpp"

namespace rlock::cli {

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  rows_.push_back(std::move(titles));
}

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = util::printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text(size_t width) const {
  std::string out;
  for (const std::string& line : lines(width)) out += line + "\n";
  return out;
}

std::vector<std::string> Table::lines(size_t width) const {
  constexpr size_t kRoomy = 60;
  const size_t gap = width < kRoomy ? 1 : 2;
  const std::vector<size_t> columns = widths(width, gap);
  std::vector<std::string> out;
  for (const auto& cells : rows_) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (columns[i] == 0) continue;
      if (!line.empty()) line.append(gap, ' ');
      line += util::padded(cells[i], columns[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.push_back(std::move(line));
  }
  return out;
}

// Gives each column its least width, by rank, as far as there is room, and then distributes the
// rest in the same order. 0: the column is left out.
std::vector<size_t> Table::widths(size_t width, size_t gap) const {
  constexpr size_t kLastColumnMinimum = 20;
  std::vector<size_t> wanted(columns_.size()), out(columns_.size()), order(columns_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      wanted[i] = std::max(wanted[i], util::display_width(row[i]));
    }
  }
  const size_t all = std::accumulate(wanted.begin(), wanted.end() - 1,
                                     std::min(wanted.back(), kLastColumnMinimum));
  if (all + gap * (wanted.size() - 1) > width) {
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = std::min(wanted[i], columns_[i].most);
  }
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return columns_[a].rank < columns_[b].rank; });
  size_t used = 0;
  for (size_t i : order) {
    const size_t before = used == 0 ? 0 : gap;
    const size_t least = std::min(wanted[i], columns_[i].least);
    if (used > 0 && used + before + least > width) break;
    out[i] = std::min(least, width);
    used += before + out[i];
  }
  for (size_t i : order) {
    if (out[i] == 0) continue;
    const size_t more = std::min(wanted[i] - out[i], width - std::min(width, used));
    out[i] += more;
    used += more;
  }
  return out;
}

}  // namespace rlock::cli
