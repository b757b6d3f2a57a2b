#include "cli/past.hpp"

#include <algorithm>
#include <charconv>

namespace rlock::cli {
namespace {

// The number of `exit:7` for `exit:`; up to 255.
std::optional<int> number_after(std::string_view label, std::string_view text) {
  if (!text.starts_with(label)) return std::nullopt;
  text.remove_prefix(label.size());
  unsigned value = 0;
  const char* end = text.data() + text.size();
  auto [stop, trouble] = std::from_chars(text.data(), end, value);
  if (trouble != std::errc() || stop != end || value > 255) return std::nullopt;
  return static_cast<int>(value);
}

int64_t start_of(const HistoryLine& line) {
  return line.run ? line.run->since.ms : line.skips->first.ms;
}

}  // namespace

Chronicle chronicle_of(const std::vector<lock::Past>& rows, uint64_t most) {
  Chronicle chronicle;
  for (const lock::Past& row : rows) {
    if (const auto* run = std::get_if<lock::PastRun>(&row)) {
      if (chronicle.chapters.size() == most) break;
      chronicle.chapters.push_back({*run});
      continue;
    }
    auto& chapters = chronicle.chapters;
    auto& place = chapters.empty() ? chronicle.skips : chapters.back().skips;
    place = std::get<lock::Skips>(row);
  }
  return chronicle;
}

std::vector<HistoryLine> lines_of(const std::string& name, const Chronicle& chronicle) {
  std::vector<HistoryLine> lines;
  if (chronicle.skips) lines.push_back({name, std::nullopt, chronicle.skips});
  for (const Chapter& chapter : chronicle.chapters) {
    lines.push_back({name, chapter.run, chapter.skips});
  }
  return lines;
}

void keep_newest(std::vector<HistoryLine>& lines, uint64_t most) {
  std::stable_sort(lines.begin(), lines.end(), [](const HistoryLine& a, const HistoryLine& b) {
    return start_of(a) > start_of(b);
  });
  uint64_t runs = 0;
  auto past = std::find_if(lines.begin(), lines.end(),
                           [&](const HistoryLine& line) { return line.run && ++runs > most; });
  lines.erase(past, lines.end());
}

RunEnd end_of(const lock::PastRun& run) {
  RunEnd end{run.how, number_after("exit:", run.result), number_after("signal:", run.result)};
  bool told = run.how == "released" && (run.result == "lost" || run.result == "max-run");
  if (told) end.how = run.result;
  return end;
}

}  // namespace rlock::cli
