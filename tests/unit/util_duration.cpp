#include <doctest/doctest.h>

#include "util/duration.hpp"

using namespace std::chrono_literals;
using rlock::Millis;
using rlock::util::format_duration;
using rlock::util::parse_duration;

TEST_CASE("durations are read as rlock(1) describes them") {
  struct Good {
    const char* text;
    Millis value;
  };
  for (const Good& good : {Good{"500ms", 500ms},
                           {"10s", 10s},
                           {"5m", 5min},
                           {"1h30m", 90min},
                           {"2d", 48h},
                           {"3", 3s},
                           {"0", 0ms},
                           {"0.25", 250ms},
                           {"1.5h", 90min},
                           {".5", 500ms},
                           {"1m0.5s", 60500ms},
                           {"1s500ms", 1500ms},
                           {"3650d", 87600h}}) {
    auto value = parse_duration(good.text);
    REQUIRE_MESSAGE(value, good.text);
    CHECK_MESSAGE(*value == good.value, good.text);
  }
}

TEST_CASE("an invalid duration is refused with an example of a valid one") {
  for (const char* bad : {"",      " ",    "s",    "-1",   "-1s",  "+1s",   "1x",
                          "1 s",   "1e3",  "inf",  "nan",  "0x10", ".",     "1..5s",
                          "1.2.3", "5m1h", "1h1h", "1h30", "10s ", "4000d", "99999999999999999999",
                          "ms",    "1,5s"}) {
    auto value = parse_duration(bad);
    CHECK_MESSAGE(!value, bad);
    if (!value) CHECK(value.error().kind == rlock::ErrorKind::usage);
  }
}

TEST_CASE("durations are shown in two units at most") {
  CHECK(format_duration(0ms) == "0ms");
  CHECK(format_duration(-5ms) == "0ms");
  CHECK(format_duration(850ms) == "850ms");
  CHECK(format_duration(2500ms) == "2.5s");
  CHECK(format_duration(2s) == "2s");
  CHECK(format_duration(59s) == "59s");
  CHECK(format_duration(90s) == "1m30s");
  CHECK(format_duration(5min) == "5m");
  CHECK(format_duration(125min) == "2h5m");
  CHECK(format_duration(76h) == "3d4h");
}
