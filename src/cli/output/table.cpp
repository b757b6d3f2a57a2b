#include "cli/output/table.hpp"

#include <algorithm>
#include <numeric>

#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr size_t kGap = 2;

}  // namespace

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
  for (const std::string& line : lines(listing_widths(width), kGap)) out += line + "\n";
  return out;
}

std::vector<std::string> Table::screen_lines(size_t width) const {
  constexpr size_t kRoomy = 60;
  const size_t gap = width < kRoomy ? 1 : kGap;
  return lines(screen_widths(width, gap), gap);
}

// A column of the width 0 is left out.
std::vector<std::string> Table::lines(const Widths& widths, size_t gap) const {
  std::vector<std::string> out;
  for (const auto& cells : rows_) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (widths[i] == 0) continue;
      if (!line.empty()) line.append(gap, ' ');
      line += util::padded(cells[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.push_back(std::move(line));
  }
  return out;
}

Table::Widths Table::longest_cells() const {
  Widths out(columns_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = std::max(out[i], util::display_width(row[i]));
  }
  return out;
}

Table::Widths Table::listing_widths(size_t width) const {
  constexpr size_t kLastColumnMinimum = 20;
  Widths out = longest_cells();
  size_t wanted = std::min(out.back(), kLastColumnMinimum);
  for (size_t i = 0; i + 1 < out.size(); ++i) wanted += out[i] + kGap;
  const bool capped = wanted > width;
  size_t used = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t left = width > used ? width - used : 0;
    const bool last = i + 1 == out.size();
    out[i] = std::min({out[i], left, capped && !last ? columns_[i].most : left});
    used += out[i] + kGap;
  }
  return out;
}

// First the columns that have room for the least, by rank, then what is left over goes to them in
// the same order.
Table::Widths Table::screen_widths(size_t width, size_t gap) const {
  Widths wanted = longest_cells();
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = std::min(wanted[i], columns_[i].most);
  std::vector<size_t> order(columns_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return columns_[a].rank < columns_[b].rank; });
  Widths widths(columns_.size());
  size_t used = 0;
  for (size_t i : order) {
    const size_t before = used == 0 ? 0 : gap;
    const size_t least = std::min(wanted[i], columns_[i].least);
    if (used > 0 && used + before + least > width) break;
    widths[i] = std::min(least, width);
    used += before + widths[i];
  }
  for (size_t i : order) {
    if (widths[i] == 0) continue;
    const size_t more = std::min(wanted[i] - widths[i], width - std::min(width, used));
    widths[i] += more;
    used += more;
  }
  return widths;
}

}  // namespace rlock::cli
