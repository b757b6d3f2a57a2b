#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lock/inspector.hpp"

namespace rlock::cli {

// A line of the history of one lock or of many: a run with the skips between the end of the run
// before it and its own end, most of which happened while it held the lock; the skips since the end
// of the last run; or a closing.
struct HistoryLine {
  std::string name;
  std::optional<lock::Run> run{};
  std::optional<lock::Skips> skips{};
  std::optional<lock::Closing> closing{};
};
using History = std::vector<HistoryLine>;

// At most `most` runs of `rows`, which the server sends newest first; the closings last.
History to_history(const std::string& name, const std::vector<lock::HistoryRow>& rows,
                   uint64_t most);

// One row for each run and for its skips, sorted by their starts, the newest first.
History by_start(const History& lines);

// Sorts newest first and keeps `most` runs.
void keep_newest(History& lines, uint64_t most);

// How a run ended: `how` is released, expired, lost, max-run, stopped or forced; code or signal is
// known only where the command ended and its release reported it.
struct RunEnd {
  std::string how{};
  std::optional<int> exit_code{};
  std::optional<int> signal{};
};
RunEnd end_of(const lock::Run& run);

// `exit 7` of `exit:7`, as people read the result of a run.
std::string result_text(std::string result);

// The median of the successful runs; none where there are fewer than `least`.
std::optional<Millis> usual_duration(const std::vector<lock::HistoryRow>& rows, size_t least = 1);

}  // namespace rlock::cli
