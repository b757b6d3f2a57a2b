#pragma once

#include <cstddef>
#include <functional>

namespace rlock::util {

// Whether `rows` has one row for each enumerator up to `Last`, in their order, so that an
// enumerator is the index of its row. `id` is the member with the enumerator.
template <auto Last, class Row, size_t N, class Id>
constexpr bool rows_in_order(const Row (&rows)[N], Id id) {
  for (size_t i = 0; i < N; ++i) {
    if (static_cast<size_t>(std::invoke(id, rows[i])) != i) return false;
  }
  return N == static_cast<size_t>(Last) + 1;
}

}  // namespace rlock::util
