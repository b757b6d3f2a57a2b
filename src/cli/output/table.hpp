#pragma once

#include <string>
#include <vector>

namespace rlock::cli {

// Text in columns, two blanks apart, each as wide as its longest cell; the last one takes what is
// left. Where that leaves it too little, the others are cut to their caps.
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
  std::vector<size_t> longest() const;  // cell of each column
  std::vector<size_t> widths(size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rlock::cli
