#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lock/inspector.hpp"

namespace rlock::cli {

// A run and those who came before its end and after the end of the run before it: most of them
// while it held the lock.
struct RunWithSkips {
  lock::Run run;
  std::optional<lock::Skips> skips{};
};

// The history as people look at it, the newest first.
struct History {
  std::optional<lock::Skips> skips{};  // since the end of the last run
  std::vector<RunWithSkips> runs{};
};

// At most `most` runs of `rows`, newest first as the server has them.
History to_history(const std::vector<lock::HistoryRow>& rows, uint64_t most);

// A line of the history of one lock or of many: a run with the skips before its end, or the skips
// since the last run.
struct HistoryLine {
  std::string name;
  std::optional<lock::Run> run{};
  std::optional<lock::Skips> skips{};
};
std::vector<HistoryLine> lines_of(const std::string& name, const History& history);

// Puts the newest first and keeps `most` runs.
void keep_newest(std::vector<HistoryLine>& lines, uint64_t most);

// What a run came to, in parts: `how` is released, expired, lost, max-run or forced; the code or
// the signal is known only where the command ended and its end was told.
struct RunEnd {
  std::string how{};
  std::optional<int> exit_code{};
  std::optional<int> signal{};
};
RunEnd end_of(const lock::Run& run);

}  // namespace rlock::cli
