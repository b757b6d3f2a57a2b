#pragma once

#include <string>
#include <vector>

#include "cli/watch/client.hpp"
#include "cli/watch/keys.hpp"
#include "cli/watch/model.hpp"

// What the screen shows. Pure: the same input makes the same lines.
namespace rlock::cli {

enum class LineStyle { plain, title, selected, faint, alarm };
struct Line {
  std::string text;  // printable, at most as many columns as the screen has
  LineStyle style = LineStyle::plain;

  bool operator==(const Line&) const = default;
};

struct FrameInput {
  const WatchModel& model;
  const ServerState& state;
  bool complete = true;  // the listing has been read once
  std::string server{};
  Cursor cursor{};  // settled
  size_t columns = 80;
  size_t rows = 24;
  TimePoint now{};
};

// How many locks fit below what is said of the server.
size_t page_of(const FrameInput& input);
// The names of the lines of the table, sorted.
std::vector<std::string> table_names(const WatchModel& model);

// The table, or the queue of the lock that the cursor has opened. `rows` lines at most. The
// cursor's opened_top is brought back to the last line that there is.
std::vector<Line> frame(FrameInput& input);

}  // namespace rlock::cli
