#include "cli/output/table.hpp"

#include <algorithm>

#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr size_t kGap = 2;

std::string line_of(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    std::string cell = util::shortened(cells[i], widths[i]);
    line += cell + std::string(widths[i] - util::character_count(cell) + kGap, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

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
  const std::vector<size_t> room = widths(width);
  std::string out;
  for (const auto& row : rows_) out += line_of(row, room);
  return out;
}

std::vector<size_t> Table::longest_cells() const {
  std::vector<size_t> out(columns_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = std::max(out[i], util::character_count(row[i]));
    }
  }
  return out;
}

std::vector<size_t> Table::widths(size_t width) const {
  constexpr size_t kLastColumnMinimum = 20;
  std::vector<size_t> out = longest_cells();
  size_t wanted = std::min(out.back(), kLastColumnMinimum);
  for (size_t i = 0; i + 1 < out.size(); ++i) wanted += out[i] + kGap;
  const bool capped = wanted > width;
  size_t used = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t left = width > used ? width - used : 0;
    const bool last = i + 1 == out.size();
    out[i] = std::min({out[i], left, capped && !last ? columns_[i].cap : left});
    used += out[i] + kGap;
  }
  return out;
}

}  // namespace rlock::cli
