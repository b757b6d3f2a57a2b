#include "cli/options/suggest.hpp"

#include <algorithm>
#include <vector>

namespace rlock::cli {

size_t edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> cost((a.size() + 1) * width);
  auto at = [&](size_t i, size_t j) -> size_t& { return cost[i * width + j]; };
  for (size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({replaced, at(i - 1, j) + 1, at(i, j - 1) + 1});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

std::optional<std::string_view> suggestion(std::string_view word,
                                           std::span<const std::string_view> candidates) {
  constexpr size_t kLongestWord = 40;  // nobody mistypes more; bounds the table above
  if (word.empty() || word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string_view> best;
  size_t least = 1 + std::max<size_t>(1, word.size() / 3);
  for (std::string_view candidate : candidates) {
    // The beginning of a word is as near as one slip: --conflict for --conflict-exit-code.
    bool begun = word.size() >= 2 && candidate.starts_with(word);
    size_t distance = begun ? 1 : edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

}  // namespace rlock::cli
