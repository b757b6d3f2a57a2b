#include "cli/output/history_rows.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>

#include "util/text.hpp"

namespace rlock::cli {
namespace {

// The number in `exit:7`, up to 255, for the label `exit:`.
std::optional<int> number_after(std::string_view label, std::string_view text) {
  if (!text.starts_with(label)) return std::nullopt;
  text.remove_prefix(label.size());
  return util::parse_number<uint8_t>(text);
}

int64_t start_of(const HistoryLine& line) {
  if (line.closing) return line.closing->at.ms;
  return line.run ? line.run->since.ms : line.skips->first.ms;
}

void sort_by_start(History& lines) {
  std::stable_sort(lines.begin(), lines.end(), [](const HistoryLine& a, const HistoryLine& b) {
    return start_of(a) > start_of(b);
  });
}

}  // namespace

History to_history(const std::string& name, const std::vector<lock::HistoryRow>& rows,
                   uint64_t most) {
  History lines, closings;
  uint64_t runs = 0;
  for (const lock::HistoryRow& row : rows) {
    if (const auto* run = std::get_if<lock::Run>(&row)) {
      if (runs++ == most) break;
      lines.push_back({name, *run});
    } else if (const auto* closing = std::get_if<lock::Closing>(&row)) {
      closings.push_back({name, std::nullopt, std::nullopt, *closing});
    } else {
      if (lines.empty()) lines.push_back({name});
      lines.back().skips = std::get<lock::Skips>(row);
    }
  }
  std::move(closings.begin(), closings.end(), std::back_inserter(lines));
  return lines;
}

History by_start(const History& lines) {
  History rows;
  for (const HistoryLine& line : lines) {
    if (line.run) rows.push_back({line.name, line.run, std::nullopt});
    if (line.skips) rows.push_back({line.name, std::nullopt, line.skips});
    if (line.closing) rows.push_back(line);
  }
  sort_by_start(rows);
  return rows;
}

void keep_newest(History& lines, uint64_t most) {
  sort_by_start(lines);
  uint64_t runs = 0;
  auto first_excess = std::find_if(lines.begin(), lines.end(), [&](const HistoryLine& line) {
    return line.run && ++runs > most;
  });
  lines.erase(first_excess, lines.end());
}

RunEnd end_of(const lock::Run& run) {
  RunEnd end{run.how, number_after("exit:", run.result), number_after("signal:", run.result)};
  const bool ended_early =
      run.result == "lost" || run.result == "max-run" || run.result == "stopped";
  if (run.how == "released" && ended_early) end.how = run.result;
  return end;
}

std::string result_text(std::string result) {
  const size_t colon = result.find(':');
  if (colon != result.npos) result[colon] = ' ';
  return result;
}

std::optional<Millis> usual_duration(const std::vector<lock::HistoryRow>& rows, size_t least) {
  std::vector<int64_t> durations;
  for (const lock::HistoryRow& row : rows) {
    const auto* run = std::get_if<lock::Run>(&row);
    if (run == nullptr || run->how != "released" || end_of(*run).exit_code != 0) continue;
    const bool plausible = run->since.ms > 0 && run->until.ms >= run->since.ms;
    if (plausible) durations.push_back(run->until.ms - run->since.ms);
  }
  if (durations.size() < least) return std::nullopt;
  std::sort(durations.begin(), durations.end());
  const size_t last = durations.size() - 1;
  return Millis(std::midpoint(durations[last / 2], durations[last - last / 2]));
}

}  // namespace rlock::cli
