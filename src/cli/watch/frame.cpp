#include "cli/watch/frame.hpp"

#include <algorithm>
#include <span>
#include <sstream>
#include <utility>

#include "cli/output/record.hpp"
#include "cli/output/render.hpp"
#include "cli/output/table.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr char kEscape = '\x1b';

struct KeyBytes {
  std::string_view bytes;
  Key key;
};
// The sequences after an escape.
constexpr KeyBytes kSequences[] = {
    {"[A", Key::up},       {"OA", Key::up},         {"[B", Key::down},  {"OB", Key::down},
    {"[C", Key::enter},    {"OC", Key::enter},      {"[D", Key::back},  {"OD", Key::back},
    {"[5~", Key::page_up}, {"[6~", Key::page_down}, {"[H", Key::first}, {"OH", Key::first},
    {"[1~", Key::first},   {"[F", Key::last},       {"OF", Key::last},  {"[4~", Key::last}};
// ^D, ^N, ^P and ^L are listed by their numbers.
constexpr KeyBytes kBytes[] = {
    {"q", Key::quit},    {"Q", Key::quit},    {"\x04", Key::quit}, {"j", Key::down},
    {"\x0e", Key::down}, {"k", Key::up},      {"\x10", Key::up},   {" ", Key::page_down},
    {"b", Key::page_up}, {"g", Key::first},   {"G", Key::last},    {"\r", Key::enter},
    {"\n", Key::enter},  {"\x7f", Key::back}, {"\b", Key::back},   {"\x0c", Key::redraw}};

std::optional<Key> key_of(std::string_view bytes, std::span<const KeyBytes> known) {
  auto found = std::find_if(known.begin(), known.end(),
                            [&](const KeyBytes& one) { return one.bytes == bytes; });
  return found == known.end() ? std::nullopt : std::optional(found->key);
}

// The length of the sequence after an escape, in bytes; 0 if more must come.
size_t sequence_length(std::string_view rest) {
  if (rest.empty()) return 0;
  if (rest.front() == 'O') return rest.size() < 2 ? 0 : 2;
  if (rest.front() != '[') return 1;
  constexpr size_t kLongest = 16;
  auto last =
      std::find_if(rest.begin() + 1, rest.end(), [](char c) { return c >= '@' && c <= '~'; });
  if (last == rest.end()) return rest.size() > kLongest ? rest.size() : 0;
  return static_cast<size_t>(last - rest.begin()) + 1;
}

size_t line_of(const std::string& name, const std::vector<std::string>& names) {
  auto at = std::lower_bound(names.begin(), names.end(), name);
  if (at == names.end() && !names.empty()) --at;
  return static_cast<size_t>(at - names.begin());
}

size_t moved_line(size_t line, Key key, size_t lines, size_t page) {
  const size_t last = lines == 0 ? 0 : lines - 1;
  const size_t step = std::max<size_t>(1, page);
  switch (key) {
    case Key::up:
      return line - std::min<size_t>(line, 1);
    case Key::down:
      return std::min(line + 1, last);
    case Key::page_up:
      return line - std::min(line, step);
    case Key::page_down:
      return std::min(line + step, last);
    case Key::first:
      return 0;
    case Key::last:
      return last;
    default:
      return line;
  }
}

}  // namespace

std::vector<Key> KeyReader::feed(std::string_view bytes) {
  pending_ += bytes;
  std::vector<Key> keys;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    if (rest.front() != kEscape) {
      if (auto key = key_of(rest.substr(0, 1), kBytes)) keys.push_back(*key);
      rest.remove_prefix(1);
      continue;
    }
    const size_t length = sequence_length(rest.substr(1));
    if (length == 0) break;
    if (auto key = key_of(rest.substr(1, length), kSequences)) keys.push_back(*key);
    rest.remove_prefix(1 + length);
  }
  pending_ = std::string(rest);
  return keys;
}

std::vector<Key> KeyReader::flush() {
  const bool escape = std::exchange(pending_, {}) == std::string(1, kEscape);
  return escape ? std::vector{Key::back} : std::vector<Key>{};
}

Cursor settled(Cursor cursor, const std::vector<std::string>& names, size_t page) {
  if (names.empty()) return cursor;
  const size_t line = line_of(cursor.selected, names);
  cursor.selected = names[line];
  const size_t rows = std::max<size_t>(1, page);
  const size_t highest = names.size() - std::min(names.size(), rows);
  cursor.top = std::min({cursor.top, line, highest});
  if (line >= cursor.top + rows) cursor.top = line + 1 - rows;
  return cursor;
}

Cursor moved(Cursor cursor, Key key, const std::vector<std::string>& names, size_t page) {
  if (cursor.opened) {
    if (key == Key::enter || key == Key::back) {
      cursor.opened.reset();
    } else {
      constexpr size_t kMostLines = 1000;
      cursor.opened_top = moved_line(cursor.opened_top, key, kMostLines, page);
    }
    return cursor;
  }
  if (names.empty()) return cursor;
  cursor = settled(std::move(cursor), names, page);
  if (key == Key::enter) {
    cursor.opened = cursor.selected;
    cursor.opened_top = 0;
  }
  cursor.selected = names[moved_line(line_of(cursor.selected, names), key, names.size(), page)];
  return settled(std::move(cursor), names, page);
}

namespace {

using Lines = std::vector<Line>;

constexpr size_t kHeaderRows = 2;  // the summary and the titles
constexpr size_t kFooterRows = 1;

// `850ms` changes too fast to be read.
std::string seconds(Millis time) {
  constexpr Millis kSecond{1000};
  return time < kSecond ? "0s" : util::format_duration(time / kSecond * kSecond);
}

Millis since(TimePoint then, TimePoint now) {
  return std::chrono::duration_cast<Millis>(now - then);
}

// If some servers of a quorum did not answer, a run may hold a lock that the other servers report
// as free.
LockCells cells_of(const LockView& lock) {
  LockCells cells = lock_cells(lock);
  if (!lock.snapshot) cells.command = lock.snapshot.error().text;
  const bool unsure =
      lock.snapshot && !lock.snapshot->silent.empty() && lock.snapshot->holders.empty();
  if (unsure) cells.state = "unsure";
  return cells;
}

// How much longer the present run will probably take. Negative beyond the usual time, nullopt if
// that is unknown.
std::optional<Millis> expected_left(const WatchedLock& watched, const lock::Holder& holder) {
  if (!watched.usual || holder.since.ms == 0 || holder.died) return std::nullopt;
  return *watched.usual - holder.held;
}

// `~2m`: the time after which its runs usually end; `late 30s` beyond that; `2m` for a cool-down or
// a closure, whose end is certain.
std::string expected_end(const WatchedLock& watched) {
  if (!watched.lock->snapshot) return "-";
  const lock::Snapshot& lock = *watched.lock->snapshot;
  if (lock.holders.empty()) return lock.closure ? seconds(lock.closure->left) : "-";
  const lock::Holder& holder = lock.holders.front();
  if (holder.state == lock::HolderState::cooldown) return seconds(holder.left.value_or(Millis(0)));
  const auto left = expected_left(watched, holder);
  if (!left) return "-";
  return *left >= Millis(0) ? "~" + seconds(*left) : "late " + seconds(-*left);
}

LineStyle style_of(const WatchedLock& watched, const FrameInput& input) {
  if (watched.name.text() == input.cursor.selected) return LineStyle::selected;
  const LockCells cells = cells_of(*watched.lock);
  const std::string& state = cells.state;
  if (state == "error" || state == "broken" || !cells.deadlock.empty() || !cells.death.empty())
    return LineStyle::alarm;
  return state == "free" || input.state.outage ? LineStyle::faint : LineStyle::plain;
}

std::string counted(size_t count, const char* one, const char* many) {
  return util::format("{} {}", count, count == 1 ? one : many);
}

Line summary(const FrameInput& input, const std::vector<const WatchedLock*>& locks) {
  size_t waiting = 0;
  for (const WatchedLock* watched : locks) {
    if (watched->lock->snapshot) waiting += watched->lock->snapshot->live_waiters;
  }
  return {util::format("{}, {} waiting  {}", counted(locks.size(), "lock", "locks"), waiting,
                       util::printable(input.server)),
          LineStyle::title};
}

std::string reason_of(const std::vector<lock::SilentServer>& silent) {
  if (silent.empty()) return {};
  std::string text = counted(silent.size(), "server does", "servers do") + " not answer";
  for (const lock::SilentServer& server : silent) {
    text += (&server == &silent.front() ? ": " : "; ") + server.why;
  }
  return text;
}

// The problem with the server; empty if there is none.
std::string problem_of(const ServerState& state, TimePoint now) {
  constexpr Millis kUsual{2000};  // longer than from one answer to the next
  const auto& outage = state.outage;
  const TimePoint answered = outage ? outage->since : state.last_answer.value_or(now);
  const std::string silence = "no answer for " + seconds(since(answered, now));
  if (!outage) return now - answered >= kUsual ? silence : reason_of(state.silent);
  const Millis pause = since(now, outage->next_try);
  return util::format("{}, {}: {}", silence,
                      pause > Millis(0) ? "next try in " + seconds(pause) : "trying again",
                      outage->why.text);
}

// At least one line, and at most half of the screen.
Lines server_lines(const FrameInput& input) {
  const std::string text = util::printable(problem_of(input.state, input.now));
  if (text.empty()) {
    return {{input.complete ? "" : "looking for further locks", LineStyle::faint}};
  }
  Lines lines;
  for (std::string& line : util::wrapped(text, input.columns)) {
    if (lines.size() >= std::max<size_t>(1, input.rows / 2)) break;
    lines.push_back({std::move(line), LineStyle::alarm});
  }
  return lines;
}

void add_table(Lines& lines, const FrameInput& input,
               const std::vector<const WatchedLock*>& locks) {
  Table table({{"NAME", 40, 6, 0},
               {"STATE", 8, 4, 5},
               {"HELD BY", 28, 8, 4},
               {"FOR", 7, 5, 2},
               {"ENDS", 10, 4, 6},
               {"WAIT", 5, 4, 3},
               {"AGE", 6, 3, 1},
               {"COMMAND", 400, 8, 7}});
  const size_t first = std::min(input.cursor.top, locks.size());
  const size_t last = std::min(locks.size(), first + page_of(input));
  for (size_t i = first; i < last; ++i) {
    const LockCells cells = cells_of(*locks[i]->lock);
    table.add({cells.name, cells.state, cells.who, cells.held ? seconds(*cells.held) : "-",
               expected_end(*locks[i]), cells.waiting, seconds(since(locks[i]->at, input.now)),
               cells.needs + cells.deadlock + cells.death + cells.command});
  }
  const size_t margin = 2;
  const auto texts = table.lines(input.columns - margin);
  lines.push_back({"  " + texts.front(), LineStyle::title});
  for (size_t i = first; i < last; ++i) {
    const LineStyle style = style_of(*locks[i], input);
    const char* mark = style == LineStyle::selected ? "> " : "  ";
    lines.push_back({mark + texts[i - first + 1], style});
  }
  if (locks.empty() && input.complete) lines.push_back({"  nothing is held or waited for"});
}

void add_text(Lines& lines, const std::string& text) {
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back({std::move(line)});
}

std::string expectation(const WatchedLock& watched) {
  const auto& holders = watched.lock->snapshot->holders;
  const auto left = holders.empty() ? std::nullopt : expected_left(watched, holders.front());
  if (!left) return {};
  return util::format("  usually  {}, {}", seconds(*watched.usual),
                      *left >= Millis(0) ? util::format("about {} left", seconds(*left))
                                         : seconds(-*left) + " longer than usual");
}

Lines queue_lines(const WatchedLock& watched, const FrameInput& input) {
  Lines lines;
  add_text(lines, lock_details(*watched.lock, input.columns));
  if (!watched.lock->snapshot) {
    const std::string why = util::printable(watched.lock->snapshot.error().text);
    for (std::string& line : util::wrapped(why, input.columns)) lines.push_back({std::move(line)});
    return lines;
  }
  if (const std::string text = expectation(watched); !text.empty()) lines.push_back({text});
  const lock::Snapshot& snapshot = *watched.lock->snapshot;
  lines.push_back({""});
  if (snapshot.live_waiters == 0) {
    lines.push_back({"no run is waiting"});
    return lines;
  }
  if (snapshot.waiters.empty()) {
    lines.push_back({util::format("reading the queue of {} waiting", snapshot.live_waiters)});
    return lines;
  }
  const QueueView queue{watched.lock->name, snapshot.waiters};
  add_text(lines, queue_table({&queue, 1}, NameColumn::hidden, input.columns, snapshot.servers));
  const uint64_t listed = snapshot.waiters.size();
  if (snapshot.live_waiters > listed) {
    lines.push_back({util::format("and {} more", snapshot.live_waiters - listed)});
  }
  return lines;
}

void add_queue(Lines& lines, FrameInput& input, const WatchedLock& watched) {
  lines.push_back(
      {util::format("as of {} ago", seconds(since(watched.at, input.now))), LineStyle::faint});
  Lines all = queue_lines(watched, input);
  const size_t page = page_of(input);
  size_t& top = input.cursor.opened_top;
  top = std::min(top, all.size() - std::min(all.size(), page));
  for (Line& line : std::span(all).subspan(top, std::min(page, all.size() - top))) {
    lines.push_back(std::move(line));
  }
}

}  // namespace

size_t page_of(const FrameInput& input) {
  const size_t around = kHeaderRows + server_lines(input).size() + kFooterRows;
  return input.rows > around ? input.rows - around : 1;
}

std::vector<std::string> table_names(const WatchModel& model) {
  std::vector<std::string> names;
  for (const WatchedLock* watched : model.shown()) names.push_back(watched->name.text());
  return names;
}

std::vector<Line> frame(FrameInput& input) {
  const auto locks = input.model.shown();
  Lines lines{summary(input, locks)};
  for (Line& line : server_lines(input)) lines.push_back(std::move(line));
  const WatchedLock* opened =
      input.cursor.opened ? input.model.find(*input.cursor.opened) : nullptr;
  if (opened != nullptr && opened->lock) {
    add_queue(lines, input, *opened);
  } else {
    add_table(lines, input, locks);
  }
  const size_t body = input.rows > kFooterRows ? input.rows - kFooterRows : input.rows;
  lines.resize(body);
  if (input.rows > kFooterRows) {
    lines.push_back({opened != nullptr ? "q: quit  enter: back  j/k: scroll"
                                       : "q: quit  enter: queue  j/k: move",
                     LineStyle::faint});
  }
  for (Line& line : lines) line.text = util::shortened(line.text, input.columns);
  return lines;
}

}  // namespace rlock::cli
