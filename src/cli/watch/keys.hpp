#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

enum class Key { up, down, page_up, page_down, first, last, enter, back, redraw, quit };

// What a terminal sends, as keys. A sequence may come in pieces; others than these keys' are
// skipped.
class KeyReader {
 public:
  std::vector<Key> feed(std::string_view bytes);
  // Whether an escape waits for the rest of its sequence.
  bool is_pending() const { return !pending_.empty(); }
  // No more came: it was the Escape key.
  std::vector<Key> flush();

 private:
  std::string pending_;
};

// Where the user is in the table, or in the queue of one lock.
struct Cursor {
  std::string selected{};               // the name of a lock
  size_t top = 0;                       // the first line shown
  std::optional<std::string> opened{};  // the lock whose queue is shown
  size_t opened_top = 0;
};

// `names`: the lines of the table, sorted. `page`: how many of them fit on the screen.
Cursor moved(Cursor cursor, Key key, const std::vector<std::string>& names, size_t page);
// Puts the cursor on a line that exists, and that line on the screen.
Cursor settled(Cursor cursor, const std::vector<std::string>& names, size_t page);

}  // namespace rlock::cli
