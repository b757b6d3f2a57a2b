#include "cli/options/template.hpp"

#include <algorithm>

namespace rlock::cli {
namespace {

bool is_hole_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c == ' ' || c == '-' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

}  // namespace

std::optional<std::string> fill_template(std::string_view source, const Holes& holes) {
  std::string out;
  while (true) {
    const size_t start = source.find('@');
    out += source.substr(0, start);
    if (start == source.npos) return out;
    source.remove_prefix(start + 1);
    const size_t end = source.find('@');
    // A shell's own @, as in "${words[@]}", is no hole.
    if (end == source.npos || !is_hole_name(source.substr(0, end))) {
      out += '@';
      continue;
    }
    auto hole = holes.find(source.substr(0, end));
    if (hole == holes.end()) return std::nullopt;
    std::string_view text = hole->second;
    if (text.ends_with('\n')) text.remove_suffix(1);
    out += text;
    source.remove_prefix(end + 1);
  }
}

}  // namespace rlock::cli
