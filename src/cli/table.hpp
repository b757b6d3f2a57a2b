#pragma once

#include <string>
#include <vector>

namespace rlock::cli {

// Text in columns, two blanks apart, cut to a width: each column is as wide as its longest cell but
// no wider than its cap; the last one takes what is left.
class Table {
 public:
  struct Column {
    std::string title;
    size_t cap;
  };
  explicit Table(std::vector<Column> columns);

  // Cells may hold hostile text: they are made printable here.
  void add(std::vector<std::string> cells);
  // Lines of at most `width` characters, the titles first.
  std::string text(size_t width) const;

 private:
  std::vector<size_t> widths(size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rlock::cli
