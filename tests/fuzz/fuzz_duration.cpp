#include <cstdint>
#include "fuzz/property.hpp"

#include "util/duration.hpp"
#include "util/text.hpp"

using namespace rlock;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr Millis kLongest = std::chrono::hours(24 * 3650);
  auto value = util::parse_duration(fuzz::text_of(data, size));
  if (!value) {
    require(value.error().kind == ErrorKind::usage, "a bad duration is a usage error");
    require(fuzz::harmless_line(util::printable(value.error().text)), "its message is harmless");
    return 0;
  }
  require(*value >= Millis(0) && *value <= kLongest, "a duration is within bounds");
  std::string shown = util::format_duration(*value);
  auto back = util::parse_duration(shown);
  require(bool(back), "what people are shown can be typed");
  require(*back <= *value && *value - *back <= *value / 10 + Millis(1),
          "what people are shown is the duration, rounded down");
  require(util::format_duration(*back) == shown, "what people are shown is stable");
  return 0;
}
