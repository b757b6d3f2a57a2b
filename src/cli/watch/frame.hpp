#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/watch/client.hpp"

// The screen of `rlock watch` without its terminal: keys, cursor, lines. Pure functions: the same
// input makes the same lines.
namespace rlock::cli {

enum class Key { up, down, page_up, page_down, first, last, enter, back, redraw, quit };

// Converts what a terminal sends to keys. A sequence may come in pieces; sequences of other keys
// are skipped.
class KeyReader {
 public:
  std::vector<Key> feed(std::string_view bytes);
  // Whether an escape waits for the rest of its sequence.
  bool is_pending() const { return !pending_.empty(); }
  // Call if nothing more came: it was the Escape key.
  std::vector<Key> flush();

 private:
  std::string pending_;
};

// The user's position in the table, or in the queue of one lock.
struct Cursor {
  std::string selected{};               // the name of a lock
  size_t top = 0;                       // the first line shown
  std::optional<std::string> opened{};  // the lock whose queue is shown
  size_t opened_top = 0;
};

// `names`: the lines of the table, sorted. `page`: how many lines fit on the screen.
Cursor moved(Cursor cursor, Key key, const std::vector<std::string>& names, size_t page);
// Moves the cursor to an existing line, and that line onto the screen.
Cursor settled(Cursor cursor, const std::vector<std::string>& names, size_t page);

enum class LineStyle { plain, title, selected, faint, alarm };
struct Line {
  std::string text;  // printable, at most as many columns as the screen
  LineStyle style = LineStyle::plain;

  bool operator==(const Line&) const = default;
};

struct FrameInput {
  const WatchModel& model;
  const ServerState& state;
  bool complete = true;  // whether the listing has been read once
  std::string server{};
  Cursor cursor{};  // from settled()
  size_t columns = 80;
  size_t rows = 24;
  TimePoint now{};
};

// How many locks fit below the lines about the server.
size_t page_of(const FrameInput& input);
// The names of the lines of the table, sorted.
std::vector<std::string> table_names(const WatchModel& model);

// The table, or the queue of the lock that the cursor has opened; at most `rows` lines. Moves the
// cursor's opened_top back to the last existing line.
std::vector<Line> frame(FrameInput& input);

}  // namespace rlock::cli
