#include "cli/output/timestamp.hpp"

#include <time.h>

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace rlock::cli {

std::string rfc3339(lock::ServerTime time) {
  constexpr int64_t kYear10000 = 253'402'300'800'000;
  if (time.ms <= 0 || time.ms >= kYear10000) return {};
  const time_t seconds = time.ms / 1000;
  tm utc{};
  if (gmtime_r(&seconds, &utc) == nullptr) return {};
  char text[80];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900,
                utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                static_cast<int>(time.ms % 1000));
  return text;
}

lock::ServerTime wall_clock() {
  auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<Millis>(since_1970).count()};
}

}  // namespace rlock::cli
