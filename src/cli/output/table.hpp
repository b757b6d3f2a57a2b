#pragma once

#include <string>
#include <vector>

namespace rlock::cli {

// Text in columns, by the cells of a terminal.
class Table {
 public:
  struct Column {
    std::string title;
    size_t most;       // of text(): where the line is too short for all
    size_t least = 0;  // of screen_lines(): below which the column is left out
    int rank = 0;      // 0 matters most, and is never left out
  };
  explicit Table(std::vector<Column> columns);

  // Cells may contain hostile text: it is made printable here.
  void add(std::vector<std::string> cells);

  // For a listing, the titles first: each column is as wide as its longest cell, and the last one
  // takes the rest of a line of `width`. Where that is too little, the other columns are cut.
  std::string text(size_t width) const;

  // For a screen of any width: the columns that matter least are left out where there is no room
  // for them.
  std::vector<std::string> screen_lines(size_t width) const;

 private:
  using Widths = std::vector<size_t>;
  Widths longest_cells() const;
  Widths listing_widths(size_t width) const;
  Widths screen_widths(size_t width, size_t gap) const;
  std::vector<std::string> lines(const Widths& widths, size_t gap) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rlock::cli
