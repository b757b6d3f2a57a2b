#include "cli/watch/keys.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace rlock::cli {
namespace {

constexpr char kEscape = '\x1b';

struct KeyBytes {
  std::string_view bytes;
  Key key;
};
// Behind an escape.
constexpr KeyBytes kSequences[] = {
    {"[A", Key::up},       {"OA", Key::up},         {"[B", Key::down},  {"OB", Key::down},
    {"[C", Key::enter},    {"OC", Key::enter},      {"[D", Key::back},  {"OD", Key::back},
    {"[5~", Key::page_up}, {"[6~", Key::page_down}, {"[H", Key::first}, {"OH", Key::first},
    {"[1~", Key::first},   {"[F", Key::last},       {"OF", Key::last},  {"[4~", Key::last}};
// ^D, ^N, ^P and ^L are here by their numbers.
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

// Of the sequence behind an escape: how many bytes it has; 0 where more must come.
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

}  // namespace rlock::cli
