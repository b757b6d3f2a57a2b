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

RunEnd end_of(const lock::PastRun& run) {
  RunEnd end{run.how, number_after("exit:", run.result), number_after("signal:", run.result)};
  bool told = run.how == "released" && (run.result == "lost" || run.result == "max-run");
  if (told) end.how = run.result;
  return end;
}

}  // namespace rlock::cli
