#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

// What the commands of the simulated server share.
namespace rlock::sim {

struct WrongType {};

inline int64_t number_in(std::string_view text) {
  return std::strtoll(std::string(text).c_str(), nullptr, 10);
}

// A part of a list, in whose bounds -1 is the last element.
struct Bounds {
  size_t from = 0, end = 0;
  size_t size() const { return end - from; }
};

inline Bounds bounds_of(std::string_view first, std::string_view last, size_t size) {
  const auto all = static_cast<int64_t>(size);
  int64_t from = number_in(first), to = number_in(last);
  from = std::max<int64_t>(0, from < 0 ? from + all : from);
  to = std::min(all - 1, to < 0 ? to + all : to);
  if (from > to) return {};
  return {static_cast<size_t>(from), static_cast<size_t>(to) + 1};
}

}  // namespace rlock::sim
