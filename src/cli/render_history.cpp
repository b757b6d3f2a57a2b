#include "cli/render_history.hpp"

#include <algorithm>

#include "cli/record.hpp"
#include "cli/table.hpp"
#include "cli/timestamp.hpp"
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
  return util::format_duration(util::Millis(std::max<int64_t>(0, length)));
}

std::string end_text(const lock::PastRun& run) {
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

void add_run(Table& table, const lock::PastRun& run) {
  Record record = decode_record(run.record);
  table.add({short_time(run.since), span(run.since, run.until), end_text(run), who_of(record),
             record.command.value_or("")});
}

// The last of those who came stands for all.
void add_skips(Table& table, const std::optional<lock::Skips>& skips) {
  if (!skips) return;
  Record record = decode_record(skips->record);
  table.add({short_time(skips->first), skips->count > 1 ? span(skips->first, skips->last) : "-",
             std::to_string(skips->count) + (skips->count == 1 ? " skip" : " skips"),
             who_of(record), record.command.value_or("")});
}

}  // namespace

std::string history_table(const Chronicle& chronicle, size_t width) {
  Table table({{"START", 20}, {"FOR", 7}, {"END", 12}, {"WHO", 20}, {"COMMAND", 0}});
  add_skips(table, chronicle.skips);
  for (const Chapter& chapter : chronicle.chapters) {
    add_run(table, chapter.run);
    add_skips(table, chapter.skips);
  }
  return table.text(width);
}

}  // namespace rlock::cli
