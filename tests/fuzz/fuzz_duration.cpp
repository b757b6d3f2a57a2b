#include "fuzz/property.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

using namespace rlock;
using fuzz::need;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr util::Millis kLongest = std::chrono::hours(24 * 3650);
  auto value = util::parse_duration(fuzz::text_of(data, size));
  if (!value) {
    need(value.error().kind == util::ErrorKind::usage, "a bad duration is a usage error");
    need(fuzz::harmless_line(util::printable(value.error().text)), "its message is harmless");
    return 0;
  }
  need(*value >= util::Millis(0) && *value <= kLongest, "a duration is within bounds");
  std::string shown = util::format_duration(*value);
  auto back = util::parse_duration(shown);
  need(bool(back), "what people are shown can be typed");
  need(*back <= *value && *value - *back <= *value / 10 + util::Millis(1),
       "what people are shown is the duration, rounded down");
  need(util::format_duration(*back) == shown, "what people are shown is stable");
  return 0;
}
