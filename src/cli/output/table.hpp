#pragma once

#include <string>
#include <vector>

namespace rlock::cli {

// Text in columns, two blanks apart, each as wide as its longest cell; the last column takes the
// rest of the line. Where that is too little, the other columns are cut to their caps.
class Table {
 public:
  struct Column {
    std::string title;
    size_t cap;
  };
  explicit Table(std::vector<Column> columns);

  // Cells may contain hostile text: it is made printable here.
  void add(std::vector<std::string> cells);
  // Lines of at most `width` characters, the titles first.
  std::string text(size_t width) const;

 private:
  std::vector<size_t> longest_cells() const;  // of each column
  std::vector<size_t> widths(size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rlock::cli
