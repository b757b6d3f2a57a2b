#include "cli/output/render_history.hpp"

#include <algorithm>

#include "cli/output/record.hpp"
#include "cli/output/table.hpp"
#include "cli/output/timestamp.hpp"
#include "util/duration.hpp"

namespace rlock::cli {
namespace {

// To the second: `2026-11-21T02:53:00Z`.
std::string short_time(lock::ServerTime time) {
  constexpr size_t kSeconds = 19;
  std::string text = rfc3339(time);
  return text.empty() ? "-" : text.substr(0, kSeconds) + "Z";
}

std::string span(lock::ServerTime from, lock::ServerTime to) {
  // Times come from the server and may be anything: the difference must not overflow.
  int64_t length = 0;
  if (__builtin_sub_overflow(to.ms, from.ms, &length)) length = 0;
  return util::format_duration(Millis(std::max<int64_t>(0, length)));
}

std::string end_text(const lock::Run& run) {
  RunEnd end = end_of(run);
  if (end.how != "released") return end.how;
  if (end.exit_code) return "exit " + std::to_string(*end.exit_code);
  if (end.signal) return "signal " + std::to_string(*end.signal);
  return end.how;
}

std::string who_of(const Record& record) {
  std::string who = who_text(record);
  return who.empty() ? "-" : who;
}

// What ran, and who broke its lock.
std::string what_of(const lock::Run& run, const Record& record) {
  const std::string command = record.command.value_or("");
  const std::string by = note_text(run.note);
  if (run.note.empty()) return command;
  const char* what = run.how == "forced" ? "[forced " : "[cool-down forced ";
  return what + (by.empty() ? "by an operator" : by) + "] " + command;
}

using Cells = std::vector<std::string>;

Cells run_cells(const lock::Run& run) {
  Record record = decode_record(run.record);
  return {short_time(run.since), span(run.since, run.until), end_text(run), who_of(record),
          what_of(run, record)};
}

// The last of those who came stands for all.
Cells skip_cells(const lock::Skips& skips) {
  Record record = decode_record(skips.record);
  return {short_time(skips.first), skips.count > 1 ? span(skips.first, skips.last) : "-",
          std::to_string(skips.count) + (skips.count == 1 ? " skip" : " skips"), who_of(record),
          record.command.value_or("")};
}

}  // namespace

std::string history_table(const std::vector<HistoryLine>& lines, NameColumn name_column,
                          size_t width) {
  std::vector<Table::Column> columns{
      {"START", 20}, {"FOR", 7}, {"END", 12}, {"WHO", 20}, {"COMMAND", 0}};
  if (name_column == NameColumn::shown) columns.insert(columns.begin() + 1, {"NAME", 24});
  Table table(columns);
  auto add = [&](const std::string& name, Cells cells) {
    if (name_column == NameColumn::shown) cells.insert(cells.begin() + 1, name);
    table.add(std::move(cells));
  };
  for (const HistoryLine& line : lines) {
    if (line.run) add(line.name, run_cells(*line.run));
    if (line.skips) add(line.name, skip_cells(*line.skips));
  }
  return table.text(width);
}

}  // namespace rlock::cli
