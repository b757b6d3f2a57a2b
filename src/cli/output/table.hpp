#pragma once

#include <string>
#include <vector>

namespace rlock::cli {

// Text in columns of terminal cells. Each column is as wide as its longest cell, and the last
// column takes the rest of the line. If that is too little, columns are cut, and the least
// important columns are left out.
class Table {
 public:
  struct Column {
    std::string title;
    size_t most = std::string::npos;  // width limit if the line is too short for all columns
    size_t least = 8;                 // below this width the column is left out
    int rank = 0;                     // 0 matters most; among equal ranks, the left column
  };
  explicit Table(std::vector<Column> columns);

  // Adds a row. Cells may contain hostile text; this function makes them printable.
  void add(std::vector<std::string> cells);

  // The lines, titles first.
  std::vector<std::string> lines(size_t width) const;
  std::string text(size_t width) const;

 private:
  std::vector<size_t> widths(size_t width, size_t gap) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rlock::cli
